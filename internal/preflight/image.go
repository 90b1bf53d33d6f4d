package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// image looks for the images of the job and its further jobs.
func (c Checks) image(ctx context.Context, s training.Spec) []Item {
	if c.Images == nil {
		return nil
	}
	var images []string
	for _, image := range append([]string{s.Image}, further(s)...) {
		if image != "" && !slices.Contains(images, image) {
			images = append(images, image)
		}
	}
	found := make([][]Item, len(images))
	var tasks sync.WaitGroup
	for i, image := range images {
		tasks.Go(func() { found[i] = c.oneImage(ctx, image) })
	}
	tasks.Wait()
	return slices.Concat(found...)
}

func further(s training.Spec) []string {
	var all []string
	for _, j := range s.Jobs {
		all = append(all, j.Image)
	}
	return all
}

func (c Checks) oneImage(ctx context.Context, image string) []Item {
	_, err := await(ctx, func() (struct{}, error) { return struct{}{}, c.Images.Exists(ctx, image) })
	var missing *MissingError
	switch {
	case err == nil:
		return passed(nameImage, image)
	case errors.As(err, &missing):
		return failed(nameImage, missing.Error()+": push it, or correct --image")
	}
	return unknown(nameImage, fmt.Sprintf("%s: whether it is there is not known: %s", image, err))
}

// Registry looks for images in their registries.
type Registry struct {
	// Keychain has the user's credentials; docker's own when nil.
	Keychain authn.Keychain
	// Token is an access token for Google's registries, "" when there is none.
	Token     func() string
	Transport http.RoundTripper // http.DefaultTransport when nil
}

// Exists asks for the image's manifest, without reading it.
func (r Registry) Exists(ctx context.Context, image string) error {
	ref, err := name.ParseReference(image)
	if err != nil {
		return &MissingError{fmt.Sprintf("%q is no name of an image, which", image)}
	}
	opts := []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(r.keychain()),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}), remote.WithRetryStatusCodes(http.StatusTooManyRequests),
	}
	if r.Transport != nil {
		opts = append(opts, remote.WithTransport(r.Transport))
	}
	_, err = remote.Head(ref, opts...)
	var answer *transport.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &answer):
		return fmt.Errorf("%s cannot be asked: %s", ref.Context().RegistryStr(), cause(err))
	case answer.StatusCode == http.StatusNotFound:
		return &MissingError{"image " + image}
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s does not let this account look (%d), or there is no such repository", ref.Context().RegistryStr(), answer.StatusCode)
	}
	return fmt.Errorf("%s answers %d %s", ref.Context().RegistryStr(), answer.StatusCode, http.StatusText(answer.StatusCode))
}

// cause is the last part of an error's chain: what went wrong, without the
// request.
func cause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return strings.Join(strings.Fields(err.Error()), " ")
		}
		err = inner
	}
}

func (r Registry) keychain() authn.Keychain {
	own := r.Keychain
	if own == nil {
		own = authn.DefaultKeychain
	}
	return authn.NewMultiKeychain(google{r.Token}, own)
}

// google gives Google's registries the access token that everything else of
// Google is asked with.
type google struct{ token func() string }

func (g google) Resolve(target authn.Resource) (authn.Authenticator, error) {
	host := target.RegistryStr()
	if g.token == nil || host != "gcr.io" && !strings.HasSuffix(host, ".gcr.io") && !strings.HasSuffix(host, ".pkg.dev") {
		return authn.Anonymous, nil
	}
	token := g.token()
	if token == "" {
		return authn.Anonymous, nil
	}
	return &authn.Basic{Username: "oauth2accesstoken", Password: token}, nil
}

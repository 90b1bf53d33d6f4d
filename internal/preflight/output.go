package preflight

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tpu-training/terraform-provider-tpu/internal/training"
)

// output looks whether the bucket that the job writes to is there, and whether
// the account in use may write to it. The job writes as another account.
func (c Checks) output(ctx context.Context, s training.Spec) []Item {
	path, ok := strings.CutPrefix(s.OutputDir, "gs://")
	if scheme, _, other := strings.Cut(s.OutputDir, "://"); other && !ok {
		return unknown(nameOutput, fmt.Sprintf("whether %s can be written to is not known: only Cloud Storage (gs://) is looked at, not %s://", s.OutputDir, scheme))
	}
	if c.Buckets == nil || !ok {
		return nil
	}
	bucket, _, _ := strings.Cut(path, "/")
	writable, err := await(ctx, func() (bool, error) { return c.Buckets.Writable(ctx, bucket) })
	var missing *MissingError
	switch {
	case errors.As(err, &missing):
		return failed(nameOutput, missing.Error()+": make it, or correct --output-dir")
	case err != nil:
		return unknown(nameOutput, fmt.Sprintf("whether gs://%s can be written to is not known: %s", bucket, err))
	case !writable:
		return unknown(nameOutput, fmt.Sprintf("this account may not write to gs://%s; the job can if its own service account may", bucket))
	}
	return passed(nameOutput, "gs://"+bucket+" can be written to")
}

// StorageEndpoint is where Cloud Storage is.
const StorageEndpoint = "https://storage.googleapis.com"

// permissionCreate is what writing takes.
const permissionCreate = "storage.objects.create"

// Storage asks Cloud Storage.
type Storage struct {
	Endpoint string       // StorageEndpoint when ""
	Client   *http.Client // carries the credentials
}

// Writable asks which of the permissions to write the account has.
func (s Storage) Writable(ctx context.Context, bucket string) (bool, error) {
	at := strings.TrimSuffix(cmp.Or(s.Endpoint, StorageEndpoint), "/") + "/storage/v1/b/" + url.PathEscape(bucket) + "/iam/testPermissions?permissions=" + permissionCreate
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return false, err
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		return false, fmt.Errorf("asking Cloud Storage: %s", cause(err))
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return false, &MissingError{"bucket gs://" + bucket}
	case resp.StatusCode != http.StatusOK:
		return false, fmt.Errorf("Cloud Storage answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)) //nolint:staticcheck // a name
	case err != nil:
		return false, fmt.Errorf("reading the answer of Cloud Storage: %s", cause(err))
	}
	var granted struct {
		Permissions []string `json:"permissions"`
	}
	if err := json.Unmarshal(body, &granted); err != nil {
		return false, fmt.Errorf("reading the answer of Cloud Storage: %w", err)
	}
	return slices.Contains(granted.Permissions, permissionCreate), nil
}

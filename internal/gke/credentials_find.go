package gke

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// found is where credentials are and what they are, without what they hold.
type found struct {
	place   string // "the file F named by GOOGLE_APPLICATION_CREDENTIALS"
	kind    string // "the key of service account A"; "" when place says it all
	account string // what IAM calls it, for a grant: "serviceAccount:A"; "" when it cannot be read off
	source  oauth2.TokenSource
}

func (f found) String() string {
	if f.kind == "" {
		return f.place
	}
	return f.place + " (" + f.kind + ")"
}

// tokenVariable holds an access token.
const tokenVariable = "GOOGLE_OAUTH_ACCESS_TOKEN"

// fileVariable names a file with credentials JSON, for all of Google's tools.
const fileVariable = "GOOGLE_APPLICATION_CREDENTIALS"

// jsonVariables hold credentials JSON or the path of a file with it, in the
// order in which hashicorp/google reads them.
var jsonVariables = []string{"GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON", fileVariable}

// look takes the first credentials there are: the configuration's, the
// environment's, those of gcloud, the machine's own.
func (c *Credentials) look(ctx context.Context) (found, error) {
	switch {
	case c.cfg.AccessToken != "":
		return fromToken(c.cfg.AccessToken, "access_token in the provider's configuration")
	case c.cfg.JSON != "":
		return fromJSON(ctx, c.cfg.JSON, "credentials in the provider's configuration")
	}
	if v := c.cfg.Getenv(tokenVariable); v != "" {
		return fromToken(v, tokenVariable)
	}
	for _, name := range jsonVariables {
		if v := c.cfg.Getenv(name); v != "" {
			return fromJSON(ctx, v, name)
		}
	}
	for _, file := range gcloudFiles(c.cfg.Getenv) {
		if data, err := os.ReadFile(file); err == nil {
			return decode(ctx, data, "gcloud's application default credentials in "+file)
		}
	}
	if metadata.OnGCEWithContext(ctx) {
		return found{place: "the metadata server of this machine", source: google.ComputeTokenSource("", scope)}, nil
	}
	neither := "neither access_token nor credentials is set in the provider's configuration, "
	if c.cfg.CommandLine {
		neither = ""
	}
	return found{}, &credentialsError{what: "no credentials were found: " + neither + "none of " +
		tokenVariable + ", " + strings.Join(jsonVariables, ", ") + " is set, gcloud has no application default credentials, and this machine has no metadata server"}
}

// gcloudFiles are where `gcloud auth application-default login` leaves what it
// got: in the folder that gcloud was told, or where Google's libraries look.
func gcloudFiles(getenv func(string) string) (files []string) {
	const name = "application_default_credentials.json"
	if dir := getenv("CLOUDSDK_CONFIG"); dir != "" {
		files = append(files, filepath.Join(dir, name))
	}
	if runtime.GOOS == "windows" {
		return append(files, filepath.Join(getenv("APPDATA"), "gcloud", name))
	}
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".config", "gcloud", name))
	}
	return files
}

// givenToken begins the name of credentials that are a token already.
const givenToken = "the access token from "

func fromToken(token, from string) (found, error) {
	if err := CheckAccessToken(token); err != nil {
		return found{}, &credentialsError{what: "reading " + from, err: err}
	}
	return found{place: givenToken + from,
		source: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: strings.TrimSpace(token)})}, nil
}

// fromJSON reads text as credentials JSON, or as the name of a file with it.
func fromJSON(ctx context.Context, text, from string) (found, error) {
	data, file, err := contents(text)
	if err != nil {
		return found{}, &credentialsError{what: "reading " + from, err: err}
	}
	if file == "" {
		return decode(ctx, data, from)
	}
	return decode(ctx, data, "the file "+file+" named by "+from)
}

// contents is credentials JSON and, unless text itself is the JSON, the file
// that it is in.
func contents(text string) (data []byte, file string, err error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return []byte(text), "", nil
	}
	if err := looksLikePath(text); err != nil {
		return nil, "", err
	}
	data, err = os.ReadFile(expandHome(text))
	if err != nil {
		var pathErr *os.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return nil, text, fmt.Errorf("the file %s: %w", text, err)
	}
	return data, text, nil
}

// decode makes a token source of credentials JSON that was found at place.
func decode(ctx context.Context, data []byte, place string) (found, error) {
	j, err := readJSON(data)
	if err != nil {
		return found{}, &credentialsError{what: "reading " + place, err: err}
	}
	source, err := google.CredentialsFromJSONWithType(ctx, data, google.CredentialsType(j.Type), scope)
	if err != nil {
		return found{}, &credentialsError{what: "reading " + place, err: errors.New(firstLine(err))}
	}
	kind, account := j.describe()
	return found{place: place, kind: kind, account: account, source: source.TokenSource}, nil
}

func expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

package gke

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// credentialsJSON is what is looked at in credentials JSON. Its forms are those
// of https://google.aip.dev/auth/4112 to 4117.
type credentialsJSON struct {
	Type         string           `json:"type"`
	ClientEmail  string           `json:"client_email"`
	PrivateKey   string           `json:"private_key"`
	TokenURI     string           `json:"token_uri"`
	ClientID     string           `json:"client_id"`
	ClientSecret string           `json:"client_secret"`
	RefreshToken string           `json:"refresh_token"`
	Account      string           `json:"account"`
	Audience     string           `json:"audience"`
	TokenType    string           `json:"subject_token_type"`
	TokenURL     string           `json:"token_url"`
	ActAs        string           `json:"service_account_impersonation_url"`
	Source       *credentialsJSON `json:"source_credentials"`
	Subject      struct {
		File        string `json:"file"`
		URL         string `json:"url"`
		Environment string `json:"environment_id"`
		Certificate any    `json:"certificate"`
		Executable  *struct {
			Command string `json:"command"`
		} `json:"executable"`
	} `json:"credential_source"`
	Web       any `json:"web"`
	Installed any `json:"installed"`
}

// The kinds of credentials that reach GKE.
const (
	serviceAccountKey = "service_account"
	userLogin         = "authorized_user"
	federation        = "external_account"
	federatedUser     = "external_account_authorized_user"
	impersonation     = "impersonated_service_account"
)

// needed are the fields without which credentials of a kind are of no use.
var needed = map[string]func(credentialsJSON) map[string]string{
	serviceAccountKey: func(j credentialsJSON) map[string]string {
		return map[string]string{"client_email": j.ClientEmail, "private_key": j.PrivateKey}
	},
	userLogin: func(j credentialsJSON) map[string]string {
		return map[string]string{"client_id": j.ClientID, "client_secret": j.ClientSecret, "refresh_token": j.RefreshToken}
	},
	federation: func(j credentialsJSON) map[string]string {
		return map[string]string{"audience": j.Audience, "subject_token_type": j.TokenType, "token_url": j.TokenURL, "credential_source": j.subject()}
	},
	federatedUser: func(j credentialsJSON) map[string]string {
		return map[string]string{"client_id": j.ClientID, "client_secret": j.ClientSecret, "refresh_token": j.RefreshToken, "token_url": j.TokenURL}
	},
	impersonation: func(j credentialsJSON) map[string]string {
		return map[string]string{"service_account_impersonation_url": j.ActAs}
	},
}

// CheckCredentials tells what is wrong with credentials JSON, or with the file
// that text names. Its errors never hold any of the contents.
func CheckCredentials(text string) error {
	data, file, err := contents(text)
	if err != nil {
		return err
	}
	if _, err := readJSON(data); err != nil {
		if file != "" {
			return fmt.Errorf("the file %s: %w", file, err)
		}
		return err
	}
	return nil
}

// readJSON reads credentials JSON and refuses what could never give a token.
func readJSON(data []byte) (credentialsJSON, error) {
	var j credentialsJSON
	if err := json.Unmarshal(data, &j); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return j, fmt.Errorf("its field %s is a JSON %s, which it is in no kind of credentials", wrong.Field, wrong.Value)
		}
		return j, errors.New("it is not JSON, or not all of it is there")
	}
	return j, j.check()
}

func (j credentialsJSON) check() error {
	fields, known := needed[j.Type]
	switch {
	case j.Type == "" && (j.Web != nil || j.Installed != nil):
		return errors.New("it is the secret of an OAuth client, which only starts a login: run `gcloud auth application-default login --client-id-file=FILE` and use what that writes")
	case j.Type == "":
		return fmt.Errorf("it has no field type: want credentials of type %s", kinds())
	case !known:
		return fmt.Errorf("credentials of type %q are not understood: want type %s", j.Type, kinds())
	}
	var missing []string
	for name, value := range fields(j) {
		if value == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return fmt.Errorf("credentials of type %s lack %s", j.Type, strings.Join(missing, ", "))
	}
	for name, address := range map[string]string{"token_uri": j.TokenURI, "token_url": j.TokenURL, "service_account_impersonation_url": j.ActAs} {
		if u, err := url.Parse(address); address != "" && (err != nil || !confidential(u)) {
			return fmt.Errorf("its %s is not an https:// address: secrets would travel unencrypted", name)
		}
	}
	switch j.Type {
	case serviceAccountKey:
		return checkKey(j.PrivateKey)
	case impersonation:
		if j.Source == nil {
			return fmt.Errorf("credentials of type %s lack source_credentials", j.Type)
		}
		if err := j.Source.check(); err != nil {
			return fmt.Errorf("its source_credentials: %w", err)
		}
	}
	return nil
}

func kinds() string { return strings.Join(slices.Sorted(maps.Keys(needed)), ", ") }

// checkKey refuses a private key that could sign nothing.
func checkKey(text string) error {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return errors.New("its private_key is not a PEM key: line breaks are \\n in JSON, and the BEGIN and END lines belong to it")
	}
	if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return nil
	}
	if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
		return errors.New("its private_key is PEM, but no private key can be read from it: download the key again")
	}
	return nil
}

// subject says where a federated identity comes from, "" if nowhere.
func (j credentialsJSON) subject() string {
	switch s := j.Subject; {
	case s.File != "":
		return "the file " + s.File
	case s.Executable != nil && s.Executable.Command != "":
		return "an executable"
	case s.URL != "" && s.Environment == "":
		if u, err := url.Parse(s.URL); err == nil {
			return "the address " + u.Scheme + "://" + u.Host
		}
		return "an address"
	case s.Environment != "":
		return "AWS"
	case s.Certificate != nil:
		return "a certificate"
	}
	return ""
}

// describe says what the credentials are and which account IAM knows them by.
func (j credentialsJSON) describe() (kind, account string) {
	switch j.Type {
	case serviceAccountKey:
		return "the key of service account " + j.ClientEmail, "serviceAccount:" + j.ClientEmail
	case userLogin, federatedUser:
		if j.Account != "" {
			return "the login of user " + j.Account, "user:" + j.Account
		}
		return "the login of a user", ""
	case federation:
		kind = "workload identity federation with " + j.subject()
		if j.ActAs != "" {
			return kind + ", acting as service account " + j.target(), "serviceAccount:" + j.target()
		}
		return kind, ""
	case impersonation:
		by, _ := j.Source.describe()
		return "impersonation of service account " + j.target() + " by " + by, "serviceAccount:" + j.target()
	}
	return j.Type, ""
}

// target is the account in an impersonation URL,
// .../serviceAccounts/ACCOUNT:generateAccessToken.
func (j credentialsJSON) target() string {
	_, account, _ := strings.Cut(j.ActAs, "/serviceAccounts/")
	account, _, _ = strings.Cut(account, ":")
	return account
}

// CheckAccessToken tells why token cannot be an access token. Its errors never
// hold it.
func CheckAccessToken(token string) error {
	token = strings.TrimSpace(token)
	switch {
	case token == "":
		return errors.New("the access token is empty: leave it out to use other credentials")
	case strings.HasPrefix(token, "{"), strings.Contains(token, "-----BEGIN"):
		return errors.New("it is credentials JSON or a key, not an access token: give it as credentials")
	case strings.HasPrefix(strings.ToLower(token), "bearer "):
		return errors.New("an access token is written without the word Bearer")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("it is not an access token: it has spaces, line breaks or other characters that cannot be sent")
	}
	return nil
}

// looksLikePath refuses what cannot be the name of a file. A secret in the
// wrong place must not be quoted as a file that does not exist.
func looksLikePath(text string) error {
	const want = "want credentials JSON, or the path of a file with it"
	if text == "" {
		return errors.New("it is empty: " + want)
	}
	if plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil && strings.HasPrefix(strings.TrimSpace(string(plain)), "{") {
		return errors.New("it is base64: " + want + "; decode it (base64decode in Terraform)")
	}
	if strings.Contains(text, "-----BEGIN") {
		return errors.New("it is a bare key, without the account it belongs to: " + want)
	}
	if strings.HasPrefix(text, "ya29.") {
		return errors.New("it is an access token: give it as access_token")
	}
	if len(text) > 1024 || strings.ContainsAny(text, "\n\x00") || !strings.ContainsAny(text, `/\.`) {
		return fmt.Errorf("its %d characters are neither JSON nor the path of a file: %s", len(text), want)
	}
	return nil
}

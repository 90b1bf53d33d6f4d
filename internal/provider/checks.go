package provider

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/tpu-training/terraform-provider-tpu/internal/gke"
	tpuattr "github.com/tpu-training/terraform-provider-tpu/internal/provider/attr"
)

// checkCredentials leaves a file that is not there to the plan: a configuration
// is often validated where there are no credentials.
func checkCredentials(text string) error {
	err := gke.CheckCredentials(text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// serviceAccount is an email address of IAM's own domains, or a unique id.
var serviceAccount = regexp.MustCompile(`^([^@\s/]+@([a-z0-9.-]+\.)?gserviceaccount\.com|[0-9]{10,})$`)

func checkAccount(s string) error {
	if serviceAccount.MatchString(s) {
		return nil
	}
	return fmt.Errorf("%q is not a service account: want its email address, such as NAME@PROJECT.iam.gserviceaccount.com, without a prefix", s)
}

// projectID is of a domain (example.com:id) or not, or its number.
var projectID = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z]([a-z0-9-]*[a-z0-9])?$|^[0-9]+$`)

func checkProject(s string) error {
	switch {
	case s == "": // `-var project=` and the like
		return errors.New("project is empty: leave it out to use the environment")
	case strings.HasPrefix(s, "projects/"):
		return fmt.Errorf("%q is a path: want the project's id alone, %q", s, strings.TrimPrefix(s, "projects/"))
	case !projectID.MatchString(s):
		return fmt.Errorf("%q is not a project's id: lowercase letters, digits and dashes, starting with a letter (its name in the console may be another)", s)
	}
	return nil
}

// locationName is a region (us-west4), a zone (us-west4-a), or one of the zones
// for AI (us-central1-ai1a).
var locationName = regexp.MustCompile(`^[a-z]+(-[a-z]+)*[0-9]+(-[a-z0-9]+)?$`)

func checkLocation(s string) error {
	switch {
	case s == "":
		return errors.New("location is empty: leave it out to use the environment")
	case !locationName.MatchString(s):
		return fmt.Errorf("%q is not a location: want a zone such as us-west4-a or a region such as us-west4", s)
	}
	return nil
}

// duration accepts durations of up to most.
func duration(most time.Duration) validator.String {
	return tpuattr.Check("Invalid duration", "a duration such as 30s or 2m", func(s string) error {
		d, err := parseDuration(s)
		if err == nil && d > most {
			return fmt.Errorf("%q is too long: the most is %v minutes", s, most.Minutes())
		}
		return err
	})
}

var unitless = regexp.MustCompile(`^[0-9]+$`)

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case unitless.MatchString(s):
		return 0, fmt.Errorf("%q has no unit: write %ss for seconds, or another unit (ms, m, h)", s, s)
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration: want a number with a unit, such as 500ms, 30s or 2m", s)
	case d <= 0:
		return 0, fmt.Errorf("%q is not more than zero", s)
	}
	return d, nil
}

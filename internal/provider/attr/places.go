package attr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// projectID is of a domain (example.com:id) or not, or its number.
var projectID = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z]([a-z0-9-]*[a-z0-9])?$|^[0-9]+$`)

// Project accepts the id of a project, or its number. without is what stands in
// when it is left out.
func Project(without string) validator.String {
	return Check("Invalid project", "a project's id", func(s string) error {
		switch {
		case s == "": // `-var project=` and the like
			return errors.New("project is empty: leave it out to use " + without)
		case strings.HasPrefix(s, "projects/"):
			return fmt.Errorf("%q is a path: want the project's id alone, %q", s, strings.TrimPrefix(s, "projects/"))
		case !projectID.MatchString(s):
			return fmt.Errorf("%q is not a project's id: lowercase letters, digits and dashes, starting with a letter (its name in the console may be another)", s)
		}
		return nil
	})
}

// locationName is a region (us-west4), a zone (us-west4-a), or one of the zones
// for AI (us-central1-ai1a).
var locationName = regexp.MustCompile(`^[a-z]+(-[a-z]+)*[0-9]+(-[a-z0-9]+)?$`)

// Location accepts the name of a zone or a region.
func Location(without string) validator.String {
	return Check("Invalid location", "a zone or a region", func(s string) error {
		switch {
		case s == "":
			return errors.New("location is empty: leave it out to use " + without)
		case !locationName.MatchString(s):
			return fmt.Errorf("%q is not a location: want a zone such as us-west4-a or a region such as us-west4", s)
		}
		return nil
	})
}

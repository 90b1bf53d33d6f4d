package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// wanted is what a flag takes, by its type, where its own error is Go's.
var wanted = map[string]string{
	"int": "a whole number", "duration": "a length of time such as 90s or 24h", "bool": "true or false", "int32Slice": "whole numbers, as in 2,126",
}

// flagValue says in our own words what is wrong with a flag's value.
func flagValue(err error) error {
	var value *pflag.InvalidValueError
	// Types of our own say in their errors what they want.
	if errors.As(err, &value) && strings.HasPrefix(fmt.Sprintf("%T", value.GetFlag().Value), "*pflag.") {
		if want := wanted[value.GetFlag().Value.Type()]; want != "" {
			return fmt.Errorf("--%s: %q; want %s", value.GetFlag().Name, value.GetValue(), want)
		}
	}
	return err
}

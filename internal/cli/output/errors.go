package output

import (
	"fmt"
	"io"
)

// WriteError tells the user of err: as text, or for json and yaml as an object
// {"error": {"message", ...}}. Extra keys (kind, choices) come from errors that
// have a Fields method, somewhere in their chain.
func WriteError(w io.Writer, f Format, program string, err error, fields map[string]any) {
	if f != JSON {
		fmt.Fprintf(w, "%s: %v\n", program, err)
		return
	}
	object := map[string]any{"message": err.Error()}
	for k, v := range fields {
		object[k] = v
	}
	if encodeJSON(w, map[string]any{"error": object}) != nil {
		fmt.Fprintf(w, "%s: %v\n", program, err)
	}
}

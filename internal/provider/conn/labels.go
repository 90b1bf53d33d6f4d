package conn

import "maps"

// Labels are the resource labels that an object gets: the provider's
// default_labels, overridden by its own.
func (d *Data) Labels(own map[string]string) map[string]string {
	out := map[string]string{}
	if d != nil {
		maps.Copy(out, d.DefaultLabels)
	}
	maps.Copy(out, own)
	return out
}

package accelerator

import "strings"

// Capacity is where a generation is offered. Google adds zones without notice,
// so a zone that is missing here is worth a warning and never a refusal.
type Capacity struct {
	// Zones is empty where the documentation names none.
	Zones []string `json:"zones"`
	// FlexStartZones are the zones that take flex-start requests; empty where the
	// documentation names none.
	FlexStartZones []string `json:"flex_start_zones"`
	// AsOf is when the documentation was read, YYYY-MM.
	AsOf string `json:"as_of"`
}

// Offered tells whether the generation is known to be offered in a zone, or in
// some zone of a region. known is false where the table has no zones.
func (c Capacity) Offered(location string) (offered, known bool) {
	for _, zone := range c.Zones {
		if zone == location || region(zone) == location {
			return true, true
		}
	}
	return false, len(c.Zones) > 0
}

// region of a zone: us-central1 of us-central1-a and of us-central1-ai1a.
func region(zone string) string {
	if i := strings.LastIndexByte(zone, '-'); i > 0 {
		return zone[:i]
	}
	return zone
}

// notNil is for JSON: an empty list, not null.
func (c Capacity) notNil() Capacity {
	if c.Zones == nil {
		c.Zones = []string{}
	}
	if c.FlexStartZones == nil {
		c.FlexStartZones = []string{}
	}
	return c
}

package gke

import (
	"maps"
	"slices"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// operationSettings are about versions, upgrades, scaling and what is told of
// the cluster.
var operationSettings = []Setting{
	{Name: "release_channel", Kind: Text, facet: facetChannel,
		get: func(c *containerpb.Cluster) any { return c.GetReleaseChannel().GetChannel().String() },
		set: func(c *containerpb.Cluster, v any) {
			c.ReleaseChannel = &containerpb.ReleaseChannel{Channel: channel(v.(string))}
		}},
	text("maintenance.daily_start", facetMaintenance,
		func(c *containerpb.Cluster) string {
			return c.GetMaintenancePolicy().GetWindow().GetDailyMaintenanceWindow().GetStartTime()
		},
		func(c *containerpb.Cluster, v string) {
			window(c).Policy = &containerpb.MaintenanceWindow_DailyMaintenanceWindow{DailyMaintenanceWindow: &containerpb.DailyMaintenanceWindow{StartTime: v}}
		}),
	text("maintenance.window_start", facetMaintenance,
		func(c *containerpb.Cluster) string { return moment(recurringOf(c).GetWindow().GetStartTime()) },
		func(c *containerpb.Cluster, v string) { field(&recurring(c).Window).StartTime = timestamp(v) }).comparing(sameMoment),
	text("maintenance.window_end", facetMaintenance,
		func(c *containerpb.Cluster) string { return moment(recurringOf(c).GetWindow().GetEndTime()) },
		func(c *containerpb.Cluster, v string) { field(&recurring(c).Window).EndTime = timestamp(v) }).comparing(sameMoment),
	text("maintenance.recurrence", facetMaintenance,
		func(c *containerpb.Cluster) string { return recurringOf(c).GetRecurrence() },
		func(c *containerpb.Cluster, v string) { recurring(c).Recurrence = v }),
	{Name: "maintenance.exclusions", Kind: Objects, facet: facetMaintenance,
		get: exclusionsOf,
		set: func(c *containerpb.Cluster, v any) {
			w := window(c)
			w.MaintenanceExclusions = map[string]*containerpb.TimeWindow{}
			for name, e := range v.(map[string]map[string]any) {
				w.MaintenanceExclusions[name] = exclusion(e)
			}
		},
		alike: sameExclusions},
	set("logging.components", facetLogging,
		func(c *containerpb.Cluster) []string {
			return names(c.GetLoggingConfig().GetComponentConfig().GetEnableComponents())
		},
		func(c *containerpb.Cluster, v []string) {
			field(&field(&c.LoggingConfig).ComponentConfig).EnableComponents = enums[containerpb.LoggingComponentConfig_Component](containerpb.LoggingComponentConfig_Component_value, v)
		}),
	set("monitoring.components", facetMonitoring,
		func(c *containerpb.Cluster) []string {
			return names(c.GetMonitoringConfig().GetComponentConfig().GetEnableComponents())
		},
		func(c *containerpb.Cluster, v []string) {
			field(&field(&c.MonitoringConfig).ComponentConfig).EnableComponents = enums[containerpb.MonitoringComponentConfig_Component](containerpb.MonitoringComponentConfig_Component_value, v)
		}),
	flag("monitoring.managed_prometheus", facetMonitoring,
		func(c *containerpb.Cluster) bool {
			return c.GetMonitoringConfig().GetManagedPrometheusConfig().GetEnabled()
		},
		func(c *containerpb.Cluster, v bool) {
			field(&field(&c.MonitoringConfig).ManagedPrometheusConfig).Enabled = v
		}),
	text("autoscaling_profile", facetAutoscaling,
		func(c *containerpb.Cluster) string { return named(c.GetAutoscaling().GetAutoscalingProfile()) },
		func(c *containerpb.Cluster, v string) {
			field(&c.Autoscaling).AutoscalingProfile = enum[containerpb.ClusterAutoscaling_AutoscalingProfile](containerpb.ClusterAutoscaling_AutoscalingProfile_value, v)
		}),
	flag("autoprovisioning.enabled", facetAutoscaling,
		func(c *containerpb.Cluster) bool { return c.GetAutoscaling().GetEnableNodeAutoprovisioning() },
		func(c *containerpb.Cluster, v bool) {
			a := field(&c.Autoscaling)
			if a.EnableNodeAutoprovisioning = v; !v { // GKE takes limits only together with it
				a.ResourceLimits, a.AutoprovisioningLocations = nil, nil
			}
		}),
	{Name: "autoprovisioning.limits", Kind: Objects, facet: facetAutoscaling,
		get: func(c *containerpb.Cluster) any {
			m := map[string]map[string]any{}
			for _, l := range c.GetAutoscaling().GetResourceLimits() {
				m[l.GetResourceType()] = map[string]any{"minimum": int(l.GetMinimum()), "maximum": int(l.GetMaximum())}
			}
			return m
		},
		set: func(c *containerpb.Cluster, v any) {
			a, m := field(&c.Autoscaling), v.(map[string]map[string]any)
			a.ResourceLimits = nil
			for _, name := range slices.Sorted(maps.Keys(m)) {
				minimum, _ := m[name]["minimum"].(int)
				maximum, _ := m[name]["maximum"].(int)
				a.ResourceLimits = append(a.ResourceLimits, &containerpb.ResourceLimit{ResourceType: name, Minimum: int64(minimum), Maximum: int64(maximum)})
			}
		},
		alike: sameLimits},
	text("autoprovisioning.service_account", facetAutoscaling,
		func(c *containerpb.Cluster) string {
			return c.GetAutoscaling().GetAutoprovisioningNodePoolDefaults().GetServiceAccount()
		},
		func(c *containerpb.Cluster, v string) {
			field(&field(&c.Autoscaling).AutoprovisioningNodePoolDefaults).ServiceAccount = v
		}),
	set("autoprovisioning.oauth_scopes", facetAutoscaling,
		func(c *containerpb.Cluster) []string {
			return c.GetAutoscaling().GetAutoprovisioningNodePoolDefaults().GetOauthScopes()
		},
		func(c *containerpb.Cluster, v []string) {
			field(&field(&c.Autoscaling).AutoprovisioningNodePoolDefaults).OauthScopes = v
		}),
	set("autoprovisioning.zones", facetAutoscaling,
		func(c *containerpb.Cluster) []string { return c.GetAutoscaling().GetAutoprovisioningLocations() },
		func(c *containerpb.Cluster, v []string) { field(&c.Autoscaling).AutoprovisioningLocations = v }),
}

func window(c *containerpb.Cluster) *containerpb.MaintenanceWindow {
	return field(&field(&c.MaintenancePolicy).Window)
}

func recurringOf(c *containerpb.Cluster) *containerpb.RecurringTimeWindow {
	return c.GetMaintenancePolicy().GetWindow().GetRecurringWindow()
}

// recurring is the recurring window, which takes the place of a daily one.
func recurring(c *containerpb.Cluster) *containerpb.RecurringTimeWindow {
	w := window(c)
	if w.GetRecurringWindow() == nil {
		w.Policy = &containerpb.MaintenanceWindow_RecurringWindow{RecurringWindow: &containerpb.RecurringTimeWindow{}}
	}
	return w.GetRecurringWindow()
}

func exclusion(e map[string]any) *containerpb.TimeWindow {
	str := func(key string) string { s, _ := e[key].(string); return s }
	scope := enum[containerpb.MaintenanceExclusionOptions_Scope](containerpb.MaintenanceExclusionOptions_Scope_value, str("scope"))
	return &containerpb.TimeWindow{StartTime: timestamp(str("start")), EndTime: timestamp(str("end")),
		Options: &containerpb.TimeWindow_MaintenanceExclusionOptions{MaintenanceExclusionOptions: &containerpb.MaintenanceExclusionOptions{Scope: scope}}}
}

func exclusionsOf(c *containerpb.Cluster) any {
	m := map[string]map[string]any{}
	for name, w := range c.GetMaintenancePolicy().GetWindow().GetMaintenanceExclusions() {
		m[name] = map[string]any{"start": moment(w.GetStartTime()), "end": moment(w.GetEndTime()), "scope": w.GetMaintenanceExclusionOptions().GetScope().String()}
	}
	return m
}

func sameExclusions(want, have any) bool {
	a, b := want.(map[string]map[string]any), have.(map[string]map[string]any)
	return maps.EqualFunc(a, b, func(x, y map[string]any) bool {
		return sameMoment(x["start"], y["start"]) && sameMoment(x["end"], y["end"]) && x["scope"] == y["scope"]
	})
}

func sameLimits(want, have any) bool {
	number := func(v any) int { n, _ := v.(int); return n } // a minimum left out is 0
	a, b := want.(map[string]map[string]any), have.(map[string]map[string]any)
	return maps.EqualFunc(a, b, func(x, y map[string]any) bool {
		return number(x["minimum"]) == number(y["minimum"]) && number(x["maximum"]) == number(y["maximum"])
	})
}

// timestamp of a text that was checked at plan.
func timestamp(s string) *timestamppb.Timestamp {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return nil
	}
	return timestamppb.New(t)
}

func moment(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().UTC().Format(time.RFC3339)
}

// sameMoment compares times, which may be written in several time zones.
func sameMoment(want, have any) bool {
	a, _ := want.(string)
	b, _ := have.(string)
	x, err := time.Parse(time.RFC3339, a)
	y, err2 := time.Parse(time.RFC3339, b)
	return a == b || err == nil && err2 == nil && x.Equal(y)
}

func names[E interface {
	~int32
	String() string
}](values []E) []string {
	out := make([]string, 0, len(values))
	for _, v := range values {
		out = append(out, v.String())
	}
	return out
}

func enums[E ~int32](values map[string]int32, list []string) []E {
	out := make([]E, 0, len(list))
	for _, name := range list {
		out = append(out, E(values[name]))
	}
	return out
}

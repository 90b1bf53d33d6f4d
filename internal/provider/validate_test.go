package provider_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tpu-training/terraform-provider-tpu/internal/acctest"
	"github.com/tpu-training/terraform-provider-tpu/internal/tfrun"
)

// pool, queue and the others begin on line 1 and take the lines that are
// tested from line 4 on.
func pool(lines ...string) string {
	return "resource \"tpu_slice_pool\" \"%[1]s\" {\n  cluster = \"projects/p/locations/l-a/clusters/c\"\n  name = \"pool\"\n" + strings.Join(lines, "\n") + "\n}\n"
}

func queue(lines ...string) string {
	return "resource \"tpu_kueue_queue\" \"%[1]s\" {\n  cluster = \"projects/p/locations/l-a/clusters/c\"\n  name = \"queue\"\n" + strings.Join(lines, "\n") + "\n}\n"
}

func data(kind string, lines ...string) string {
	return "data \"" + kind + "\" \"%[1]s\" {\n\n\n" + strings.Join(lines, "\n") + "\n}\n"
}

// Wrong accelerators fail in `terraform validate`, with the line that is to be
// changed and what to write there. No credentials, no API.
func TestValidateRefusesWrongAccelerators(t *testing.T) {
	const (
		unknown = "variable \"%[1]s\" {\n  type = string\n}\n"
		nothing = ""
	)
	checkValidate(t, map[string]validateCase{
		"pool_rotation":          {pool(`accelerator = "v5p"`, `topology = "8x4x4"`), 5, "write 4x4x8"},
		"pool_generation_alone":  {pool(`accelerator = "v5p"`), 4, "without a size or topology; try v5p-8 or v5p-12288"},
		"pool_dimensions":        {pool(`accelerator = "v5e"`, `topology = "4x4x4"`), 5, "its topologies have 2 sides"},
		"pool_chips_differ":      {pool(`accelerator = "v5p-8"`, `topology = "4x4x4"`), 5, "different slices"},
		"pool_spelled_differs":   {pool(`accelerator = "v5p-4x4x64"`, `topology = "8x8x16"`), 5, "name v5p-2048"},
		"pool_machine_differs":   {pool(`accelerator = "v5e-8-8t"`, `machine_type = "ct5lp-hightpu-4t"`), 5, "name v5litepod-8"},
		"pool_machine_too_large": {pool(`accelerator = "v5e-16"`, `machine_type = "ct5lp-hightpu-8t"`), 5, "try ct5lp-hightpu-4t"},
		"pool_no_machine":        {pool(`accelerator = "v5e-16"`, `machine_type = "nope"`), 5, "not a TPU machine type"},
		"pool_upper_topology":    {pool(`accelerator = "v5p"`, `topology = "4X4X8"`), 5, `write topology = "4x4x8"`},
		"pool_upper_machine":     {pool(`accelerator = "v5e-8"`, `machine_type = "CT5LP-hightpu-8t"`), 5, `write machine_type = "ct5lp-hightpu-8t"`},
		"pool_machine_size":      {pool(`accelerator = "v5e-8"`, `machine_type = "8t"`), 5, "try ct5lp-hightpu-8t"},
		"pool_bad_name":          {pool(`accelerator = "v5p-12"`, `topology = "4x4x4"`), 4, "try v5p-8 or v5p-16"},
		"pool_half_unknown":      {unknown + strings.Replace(pool(`accelerator = var.NAME`, `machine_type = "nope"`), "NAME", "%[1]s", 1), 8, "not a TPU machine type"},
		"pool_fraction":          {pool(`accelerator = "v5e-16"`, `slice_count = 1.5`), 5, "slice_count must be a whole number, not 1.5"},
		"pool_unknown":           {unknown + strings.Replace(pool(`accelerator = var.NAME`, `topology = "4x4"`), "NAME", "%[1]s", 1), 0, nothing},
		"pool_unknown_upper":     {unknown + strings.Replace(pool(`accelerator = var.NAME`, `topology = "4X4"`), "NAME", "%[1]s", 1), 8, `write topology = "4x4"`},
		"pool_kept_machine":      {pool(`accelerator = "v5e-8-8t"`, `topology = "2x4"`, `machine_type = "ct5lp-hightpu-8t"`), 0, nothing},
		"pool_forgiven_name":     {pool(`accelerator = " V5E-4X4 "`), 0, nothing},
		"queue_second_flavor": {queue(`namespaces = []`, `flavors = [`, `  { name = "a", accelerator = "v5e-16", slices = 1 },`,
			`  { name = "b", accelerator = "v5p-12", slices = 1 },`, `]`), 5, `flavors[1].accelerator = "v5p-12": v5p has no slice of 12 TensorCores`},
		"flavor":             {"resource \"tpu_kueue_flavor\" \"%[1]s\" {\n  cluster = \"projects/p/locations/l-a/clusters/c\"\n  name = \"f\"\n  accelerator = \"v6e-4x2\"\n}\n", 4, "write v6e-2x4"},
		"data_generation":    {data("tpu_accelerator", `topology = "4x4"`, `generation = "v9"`), 5, "no TPU generation"},
		"data_machine":       {data("tpu_accelerator", `topology = "4x4"`, `generation = "v5e"`, `machine_type = "nope"`), 6, `v5e has no machine type "nope"`},
		"data_other_machine": {data("tpu_accelerator", `topology = "4x4"`, `generation = "v5e"`, `machine_type = "ct6e-standard-4t"`), 6, "belongs to v6e"},
		"data_rotation":      {data("tpu_accelerator", `generation = "v5p"`, `topology = "8x4x4"`), 5, "write 4x4x8"},
		"data_no_topology":   {data("tpu_accelerator", `generation = "v5e"`, `topology = ""`), 5, "not a topology"},
		"data_named_machine": {data("tpu_accelerator", `name = "v5e-8-8t"`, `machine_type = "ct5lp-hightpu-4t"`), 5, "name v5litepod-8"},
		"data_name":          {data("tpu_accelerator", `name = "v5p-12"`), 4, "try v5p-8 or v5p-16"},
		"data_unknown":       {unknown + strings.Replace(data("tpu_accelerator", `name = var.NAME`, `machine_type = "ct5lp-hightpu-8t"`), "NAME", "%[1]s", 1), 0, nothing},
		"data_forgiven":      {data("tpu_accelerator", `generation = "V6E"`, `topology = "2 X 4"`, `machine_type = "8T"`), 0, nothing},
		"list_machine":       {data("tpu_accelerator_topologies", `machine_type = "nope"`), 4, "not a TPU machine type"},
		"list_other_machine": {data("tpu_accelerator_topologies", `generation = "v5e"`, `machine_type = "ct6e-standard-4t"`), 5, "belongs to v6e"},
		"list_range":         {data("tpu_accelerator_topologies", `min_chips = 64`, `max_chips = 16`), 5, "more than the most"},
		"list_host_range":    {data("tpu_accelerator_topologies", `min_hosts = 4`, `max_hosts = 2`), 5, "more than the most"},
		"list_rotation":      {data("tpu_accelerator_topologies", `generation = "v6e"`, `topology = "4x2"`), 5, "write 2x4"},
		"list_unknown":       {unknown + strings.Replace(data("tpu_accelerator_topologies", `generation = var.NAME`, `min_chips = 4`), "NAME", "%[1]s", 1), 0, nothing},
		"list_forgiven":      {data("tpu_accelerator_topologies", `machine_type = "CT5LP-HIGHTPU-4T"`, `topology = "2X4"`), 0, nothing},
	})
}

type validateCase struct {
	config string
	line   int
	words  string // "" where the configuration is valid
}

// checkValidate validates all cases as the files of one module.
func checkValidate(t *testing.T, cases map[string]validateCase) {
	t.Helper()
	cli := tfrun.FindCLI()
	if cli == "" {
		t.Fatal("neither terraform nor tofu is on PATH")
	}
	d, err := tfrun.New(filepath.Join(t.TempDir(), "module"), "", cli, acctest.ProviderBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"versions.tf": "terraform {\n  required_providers {\n    tpu = { source = \"" + tfrun.Source + "\" }\n  }\n}\n"}
	for name, c := range cases {
		files[name+".tf"] = fmt.Sprintf(c.config, name)
	}
	for name, text := range files {
		if err := d.Write(name, text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Output(t.Context(), "init", "-no-color"); err != nil {
		t.Fatal(err)
	}
	out, _ := d.Output(t.Context(), "validate", "-json") // fails: that is what is tested
	var report struct {
		Diagnostics []struct {
			Severity, Detail string
			Range            struct {
				Filename string
				Start    struct{ Line int }
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	got := map[string][]string{}
	for _, r := range report.Diagnostics {
		name := strings.TrimSuffix(r.Range.Filename, ".tf")
		c := cases[name]
		said := r.Detail
		if c.words != "" && strings.Contains(strings.Join(strings.Fields(said), " "), c.words) {
			said = c.words
		}
		got[name] = append(got[name], fmt.Sprintf("%s on line %d: %s", r.Severity, r.Range.Start.Line, said))
	}
	for name, c := range cases {
		var want []string
		if c.words != "" {
			want = []string{fmt.Sprintf("error on line %d: %s", c.line, c.words)}
		}
		if diff := cmp.Diff(want, got[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

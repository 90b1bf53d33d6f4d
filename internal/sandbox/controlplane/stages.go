package controlplane

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"time"
)

// stagesTemplate is KWOK's configuration. KWOK's own templates inside it use
// the usual braces, so ours are << and >>.
//
//go:embed stages.yaml.tmpl
var stagesTemplate string

func renderStages(job time.Duration) (string, error) {
	t, err := template.New("stages").Delims("<<", ">>").Option("missingkey=error").Parse(stagesTemplate)
	if err != nil {
		return "", fmt.Errorf("preparing KWOK's stages: %w", err)
	}
	var b strings.Builder
	err = t.Execute(&b, map[string]any{
		"JobMilliseconds": job.Milliseconds(),
		"Ours":            processPodQuery,
		"Version":         kubeletVersion,
		"KubeletPort":     kubeletPort,
		"Lost":            lostAnnotation,
		"Log":             LogAnnotation,
	})
	if err != nil {
		return "", fmt.Errorf("preparing KWOK's stages: %w", err)
	}
	return b.String(), nil
}

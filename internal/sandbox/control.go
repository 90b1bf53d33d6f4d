package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"time"
)

// askTimeout is longer than what is asked takes, as a rule.
const askTimeout = 10 * time.Second

// ask sends a request about something (what) to the sandbox that runs in dir,
// which may be another process. *NotRunningError when none does.
func ask[T any](ctx context.Context, dir, what, method, path string, query url.Values, body any) (T, error) {
	return askWithin[T](ctx, askTimeout, dir, what, method, path, query, body)
}

// askWithin is ask for what takes longer.
func askWithin[T any](ctx context.Context, within time.Duration, dir, what, method, path string, query url.Values, body any) (answer T, err error) {
	env, err := EnvironmentOf(dir)
	if err != nil {
		return answer, err
	}
	vars := env.Map()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	content, err := json.Marshal(body)
	if err != nil {
		return answer, err
	}
	req, err := http.NewRequestWithContext(ctx, method, vars["TPU_GKE_ENDPOINT"]+path+"?"+query.Encode(), bytes.NewReader(content))
	if err != nil {
		return answer, err
	}
	req.Header.Set("Authorization", "Bearer "+vars["GOOGLE_OAUTH_ACCESS_TOKEN"])
	client := &http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}} // it is on this machine
	resp, err := client.Do(req)
	if err != nil {
		return answer, fmt.Errorf("asking the sandbox in %s about its %s: %w: its log is %s", dir, what, err, filepath.Join(dir, logFile))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return answer, fmt.Errorf("the sandbox in %s refused: %s", dir, bytes.TrimSpace(b))
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("reading the sandbox's %s: %w", what, err)
	}
	return answer, nil
}

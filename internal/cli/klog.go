package cli

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime/pkg/log"
)

// Kubernetes' libraries log by themselves, on standard error, what the error of
// the command says better. Here it is part of what -v logs.
var (
	libraryLog  atomic.Pointer[hclog.Logger]
	takeLibrary = sync.OnceFunc(func() {
		all := klog.New(librarySink{})
		klog.SetLogger(all)
		ctrl.SetLogger(all)
	})
)

// logLibraries sends what the libraries log to log.
func logLibraries(log hclog.Logger) {
	libraryLog.Store(&log)
	takeLibrary()
}

// librarySink is where they log to.
type librarySink struct{ values []any }

// Init implements klog.LogSink.
func (librarySink) Init(klog.RuntimeInfo) {}

// Enabled implements klog.LogSink.
func (librarySink) Enabled(level int) bool { return level == 0 && (*libraryLog.Load()).IsDebug() }

// Info implements klog.LogSink.
func (s librarySink) Info(_ int, message string, values ...any) {
	(*libraryLog.Load()).Debug(message, append(s.values[:len(s.values):len(s.values)], values...)...)
}

// Error implements klog.LogSink.
func (s librarySink) Error(err error, message string, values ...any) {
	s.Info(0, message, append(values, "error", err)...)
}

// WithValues implements klog.LogSink.
func (s librarySink) WithValues(values ...any) klog.LogSink {
	return librarySink{append(s.values[:len(s.values):len(s.values)], values...)}
}

// WithName implements klog.LogSink.
func (s librarySink) WithName(string) klog.LogSink { return s }

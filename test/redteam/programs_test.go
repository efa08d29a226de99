// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

const manifests = "../../manifests"

// mostMapped is the limit for the address space of a program. If a program needs too much, the program crashes and not the
// machine. Go maps more memory than it uses.
const mostMapped = 4 << 30

// The sizes in bytes of the programs' caches, as in docs/limits.md.
const (
	// programCaches is the size of the cache of compiled expressions, which every program has.
	programCaches = cel.DefaultCacheBytes
	// schedulerCaches is the size of the cache of search results, in the profile with our allocator.
	schedulerCaches = configv1alpha1.DefaultCacheSize
	// placementCaches is the size of the cache of results of evaluating clusters for Placements.
	placementCaches = 256 << 20
)

// A program is a process of one of our programs, with its measurements.
type program struct {
	name  string
	start func(context.Context) (*controlplane.Process, error)
	// caches is the maximum total size of the program's caches in bytes.
	caches int64

	process *controlplane.Process
	// resting is the peak memory in bytes without mallory.
	resting int64
	// grown is the largest peak memory with mallory, minus resting. grownWith are the shots that caused it.
	grown     int64
	grownWith string
	// ended has a description for each time that the program has ended.
	ended []string
}

// run starts the program with a limit for its address space.
func (p *program) run(t *testing.T) {
	t.Helper()
	var err error
	p.process, err = p.start(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	limit := unix.Rlimit{Cur: mostMapped, Max: mostMapped}
	require.NoError(t, unix.Prlimit(p.process.PID(), unix.RLIMIT_AS, &limit, nil))
}

// restart kills the process, if it still runs, and starts another one.
func (p *program) restart(t *testing.T) {
	t.Helper()
	p.process.Kill()
	p.run(t)
}

// hasEnded reports whether the process has ended, and how.
func (p *program) hasEnded() (string, bool) {
	select {
	case <-p.process.Done():
		return lastWords(p.process.LogFile()), true
	default:
		return "", false
	}
}

// lastWords returns the reason why a process has ended, from its log file.
func lastWords(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(content)) {
		for _, start := range []string{"fatal error: ", "panic: ", "runtime: "} {
			if strings.HasPrefix(line, start) {
				return strings.TrimSpace(line)
			}
		}
	}
	return "without a word"
}

// measureAnew resets the kernel's measurement of the process's peak memory.
func (p *program) measureAnew() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.process.PID()), []byte("5"), 0)
}

// most returns the peak memory since measureAnew, in bytes. It returns zero if the process has ended.
func (p *program) most() int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.process.PID()))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			var kilobytes int64
			_, _ = fmt.Sscanf(rest, "%d", &kilobytes)
			return kilobytes << 10
		}
	}
	return 0
}

func (l *lab) scheduler() *program {
	return &program{name: "celset-scheduler", caches: programCaches + schedulerCaches, start: func(ctx context.Context) (*controlplane.Process, error) {
		return l.ControlPlane.StartScheduler(ctx, controlplane.SchedulerOptions{
			ConfigFile: filepath.Join(manifests, "scheduler", "config.yaml"), User: env.Scheduler.Name,
			FeatureGates: map[string]bool{v1alpha1.FeatureGate: true, "CelsetDevicePreemption": true},
		})
	}}
}

// serve returns a function that starts one of our programs with the rights of the account, and with /readyz at a free port.
func (l *lab) serve(name, account string, args ...string) func(context.Context) (*controlplane.Process, error) {
	return func(ctx context.Context) (*controlplane.Process, error) {
		kubeconfig, err := l.KubeconfigFor(account)
		if err != nil {
			return nil, err
		}
		ports, err := controlplane.FreePorts(1)
		if err != nil {
			return nil, err
		}
		health := localAddress(ports[0])
		return l.StartProgram(ctx, controlplane.Program{
			Name: name, Binary: name, Endpoint: "http://" + health,
			Args: append([]string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=" + health, "--metrics-bind-address=0"}, args...),
			Ready: func(ctx context.Context, _ *controlplane.Process) error {
				return controlplane.Probe(ctx, "http://"+health+"/readyz")
			},
		})
	}
}

// webhook starts the webhook and applies its configuration from the manifests, with an address on this machine.
func (l *lab) webhook(t *testing.T) *program {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	ports, err := controlplane.FreePorts(1)
	require.NoError(t, err)
	l.webhookAddress = localAddress(ports[0])
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	for _, file := range []string{"base/webhooks.yaml", "placements/webhook.yaml"} {
		content, err := os.ReadFile(filepath.Join(manifests, "webhook", file))
		require.NoError(t, err)
		part := &admissionv1.ValidatingWebhookConfiguration{}
		require.NoError(t, yaml.UnmarshalStrict(content, part))
		configuration.ObjectMeta = part.ObjectMeta
		configuration.Webhooks = append(configuration.Webhooks, part.Webhooks...)
	}
	for i := range configuration.Webhooks {
		hook := &configuration.Webhooks[i]
		url := "https://" + localAddress(ports[0]) + *hook.ClientConfig.Service.Path
		hook.ClientConfig = admissionv1.WebhookClientConfig{URL: &url, CABundle: certificate}
		hook.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "celset-webhook", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"unasked"}},
		}}
	}
	p := &program{name: "celset-webhook", caches: programCaches, start: l.serve("celset-webhook", env.Webhook.Name,
		"--certificate-source=files", "--cert-dir="+dir, "--webhook-bind-address="+l.webhookAddress, "--check-placements", "--scheduler-names=celset-scheduler")}
	p.run(t)
	require.NoError(t, l.admin.Create(t.Context(), configuration))
	return p
}

// placement starts celset-placement, and returns it with its debug address.
func (l *lab) placement(t *testing.T, args ...string) (p *program, debug string) {
	t.Helper()
	ports, err := controlplane.FreePorts(1)
	require.NoError(t, err)
	debug = localAddress(ports[0])
	return &program{name: "celset-placement", caches: programCaches + placementCaches, start: l.serve("celset-placement", env.Placement.Name,
		append([]string{"--leader-elect=false", "--debug-bind-address=" + debug}, args...)...)}, debug
}

func localAddress(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// A probe is a harmless action of alice that the test repeats and measures.
type probe struct {
	name    string
	program *program
	// once performs the action. n is the number of the repetition.
	once func(ctx context.Context, n int) error

	n int
	// alone is the maximum duration without mallory.
	alone time.Duration
	// worst is the largest additional duration with mallory. worstWith are the shots that caused it.
	worst     time.Duration
	worstWith string
	times     int
}

// patience is the time limit for each of alice's actions.
const patience = 10 * time.Second

// repeat repeats the action until stop is closed, and returns the maximum duration. If an action exceeds patience, its duration
// counts as patience.
func (p *probe) repeat(ctx context.Context, stop <-chan struct{}) (worst time.Duration, failure error) {
	for {
		p.n++
		p.times++
		start := time.Now()
		within, cancel := context.WithTimeout(ctx, patience)
		err := p.once(within, p.n)
		cancel()
		worst = max(worst, time.Since(start))
		if err != nil && failure == nil {
			failure = fmt.Errorf("%s: %w", p.name, err)
		}
		select {
		case <-stop:
			return worst, failure
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// during calls do, and repeats all probes at the same time. It returns the maximum duration of each probe.
func during(ctx context.Context, probes []*probe, do func()) (map[*probe]time.Duration, []error) {
	var (
		mutex    sync.Mutex
		worst    = map[*probe]time.Duration{}
		failures []error
		all      sync.WaitGroup
	)
	stop := make(chan struct{})
	for _, p := range probes {
		all.Go(func() {
			took, err := p.repeat(ctx, stop)
			mutex.Lock()
			defer mutex.Unlock()
			worst[p] = took
			if err != nil {
				failures = append(failures, err)
			}
		})
	}
	do()
	close(stop)
	all.Wait()
	return worst, failures
}

// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podprocess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/celset/celset/internal/controlplane"
)

const (
	// ServiceAddresses is a flag of the API server: it gives Services addresses that this machine
	// has.
	ServiceAddresses = "--service-cluster-ip-range=127.96.0.0/16"

	// serviceAddress is where pods find the API server.
	serviceAddress = "127.0.0.1:443"

	// period is how often the API server is asked what there is to do.
	period = 100 * time.Millisecond
)

// Options say what a Runner runs.
type Options struct {
	// Nodes whose pods are run. They must exist, and be ready without a kubelet.
	Nodes []string
	// Programs are the names of binaries. Pods with other images are left alone.
	Programs []string
}

// Runner runs pods until it is stopped.
type Runner struct {
	cp        *controlplane.ControlPlane
	client    kubernetes.Interface
	apiServer string // host and port
	options   Options
	dir       string

	cancel context.CancelFunc
	done   sync.WaitGroup

	// These are of the goroutine that asks.
	services map[serviceKey]*service
	plugins  map[string]bool // sockets

	mutex    sync.Mutex
	pods     map[types.UID]*pod
	started  int // pods
	logs     []string
	problems []string
}

// Start starts a runner. Its binaries, [controlplane.Runc] and [controlplane.NodeInit] are there.
func Start(ctx context.Context, cp *controlplane.ControlPlane, options Options) (*Runner, error) {
	if err := Unavailable(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "celset-pods-")
	if err != nil {
		return nil, err
	}
	config := cp.RESTConfig()
	request, err := http.NewRequest(http.MethodGet, config.Host, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &Runner{
		cp: cp, client: cp.Client(), apiServer: request.URL.Host, options: options, dir: dir, cancel: cancel,
		services: map[serviceKey]*service{}, plugins: map[string]bool{}, pods: map[types.UID]*pod{},
	}
	r.done.Go(func() { r.run(ctx) })
	return r, nil
}

// Stop ends all programs, and returns when nothing of them is left. Pods stay in the API server as they are.
func (r *Runner) Stop() error {
	r.cancel()
	r.done.Wait()
	return os.RemoveAll(r.dir)
}

func (r *Runner) run(ctx context.Context) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		if err := r.sync(ctx); err != nil && ctx.Err() == nil {
			r.problem(err)
		}
		select {
		case <-ctx.Done():
			for _, service := range r.services {
				service.close()
			}
			return
		case <-ticker.C:
		}
	}
}

// sync starts what is new, and ends what is to be deleted.
func (r *Runner) sync(ctx context.Context) error {
	pods, err := r.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	present := map[types.UID]bool{}
	for i := range pods.Items {
		object := &pods.Items[i]
		if !r.concerns(object) {
			continue
		}
		present[object.UID] = true
		p := r.pod(object.UID)
		switch {
		case p == nil:
			r.start(ctx, object)
		case object.DeletionTimestamp != nil:
			p.delete()
		}
	}
	for _, p := range r.all() {
		if !present[p.object.UID] {
			p.delete()
		}
	}
	var errs []error
	for _, node := range r.options.Nodes {
		errs = append(errs, r.registerPlugins(ctx, node))
	}
	return errors.Join(append(errs, r.syncServices(ctx))...)
}

// concerns tells whether a pod is to be run here.
func (r *Runner) concerns(object *corev1.Pod) bool {
	return slices.Contains(r.options.Nodes, object.Spec.NodeName) && slices.ContainsFunc(object.Spec.Containers, func(container corev1.Container) bool {
		return slices.Contains(r.options.Programs, program(container.Image))
	})
}

func (r *Runner) start(ctx context.Context, object *corev1.Pod) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.started++
	ctx, cancel := context.WithCancel(ctx)
	p := &pod{runner: r, object: object, address: fmt.Sprintf("10.244.%d.%d", r.started/250, 1+r.started%250), delete: cancel}
	r.pods[object.UID] = p
	r.done.Go(func() {
		defer cancel()
		p.live(ctx)
		r.mutex.Lock()
		defer r.mutex.Unlock()
		delete(r.pods, object.UID)
	})
}

func (r *Runner) pod(uid types.UID) *pod {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.pods[uid]
}

func (r *Runner) all() []*pod {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var all []*pod
	for _, p := range r.pods {
		all = append(all, p)
	}
	return all
}

func (r *Runner) nodeDir(node string) string { return filepath.Join(r.dir, "nodes", node) }

func (r *Runner) problem(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.problems = append(r.problems, err.Error())
}

// Problems are what should not have happened: containers that ended by themselves or that a probe ended, and
// what pods ask for that is not known here.
func (r *Runner) Problems() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.problems)
}

// Logs are the paths of the files with what programs printed, those that ended too.
func (r *Runner) Logs() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.logs)
}

// Probe calls each probe of a pod's container now, once, whether it is time or not. It returns how many it has.
func (r *Runner) Probe(ctx context.Context, object *corev1.Pod) (probes int, err error) {
	p := r.pod(object.UID)
	if p == nil {
		return 0, fmt.Errorf("pod %s/%s does not run", object.Namespace, object.Name)
	}
	container, err := p.container()
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		if probe != nil {
			probes++
			errs = append(errs, p.call(ctx, probe))
		}
	}
	return probes, errors.Join(errs...)
}

// Get asks a pod for a path, at a port by its name, with a token if there is one.
func (r *Runner) Get(ctx context.Context, object *corev1.Pod, scheme, port, path, token string) (status int, body []byte, err error) {
	p := r.pod(object.UID)
	if p == nil {
		return 0, nil, fmt.Errorf("pod %s/%s does not run", object.Namespace, object.Name)
	}
	number, found := p.port(port)
	if !found {
		return 0, nil, fmt.Errorf("pod %s/%s has no port %s", object.Namespace, object.Name, port)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://%s:%d%s", scheme, p.address, number, path), nil)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return p.do(request)
}

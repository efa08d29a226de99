// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podprocess

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/controlplane"
)

const (
	// wait is the time until something is tried again.
	wait = 200 * time.Millisecond
	// tick is how often the time of a probe may have come.
	tick = 50 * time.Millisecond
)

// pod is one that runs.
type pod struct {
	runner  *Runner
	object  *corev1.Pod // as it was when it was started
	address string
	// delete has it end.
	delete context.CancelFunc

	mutex   sync.Mutex
	sandbox *controlplane.Process

	// These are of the goroutine that it lives in.
	restarts int32
	since    metav1.Time
}

func (p *pod) String() string { return p.object.Namespace + "/" + p.object.Name }

// id is the name of its cgroup and of its container.
func (p *pod) id() string { return "celset-pod-" + string(p.object.UID) }

// live runs the pod until it is deleted.
func (p *pod) live(ctx context.Context) {
	dir := filepath.Join(p.runner.dir, "pods", string(p.object.UID))
	var passed sync.WaitGroup
	defer passed.Wait()
	err := p.prepare(ctx, dir, &passed)
	if err == nil {
		p.runAgainAndAgain(ctx, dir)
	} else if ctx.Err() == nil {
		p.runner.problem(fmt.Errorf("pod %s: %w", p, err))
		<-ctx.Done()
	}
	if sandbox := p.processes(); sandbox != nil {
		sandbox.Stop()
	}
	if err := errors.Join(p.removeCgroups(), os.RemoveAll(dir)); err != nil {
		p.runner.problem(fmt.Errorf("pod %s: %w", p, err))
	}
	p.confirm()
}

// confirm has the API server forget a pod that is to be deleted and has ended.
func (p *pod) confirm() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pods := p.runner.client.CoreV1().Pods(p.object.Namespace)
	object, err := pods.Get(ctx, p.object.Name, metav1.GetOptions{})
	if err == nil && object.UID == p.object.UID && object.DeletionTimestamp != nil {
		err = pods.Delete(ctx, p.object.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(p.object.UID))})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		p.runner.problem(fmt.Errorf("pod %s: %w", p, err))
	}
}

// prepare makes everything but the container. It waits for ConfigMaps, Secrets and accounts that
// are not there yet, or any more.
func (p *pod) prepare(ctx context.Context, dir string, passed *sync.WaitGroup) error {
	if _, err := p.container(); err != nil {
		return err
	}
	var volumes map[string]string
	for {
		var err error
		if volumes, err = p.writeVolumes(ctx, filepath.Join(dir, "volumes")); err == nil {
			break
		}
		// A controller may replace pods of a namespace that is being deleted, until it is deleted itself.
		if !apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return err
		}
		if err := p.tell(ctx, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating", Message: err.Error()}}, false, false); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
	if err := p.writeBundle(dir, volumes); err != nil {
		return err
	}
	return p.startSandbox(ctx, dir, passed)
}

// startSandbox makes the network of the pod, in which there is the API server.
func (p *pod) startSandbox(ctx context.Context, dir string, passed *sync.WaitGroup) error {
	ready, private := filepath.Join(dir, "sandbox-ready"), filepath.Join(dir, "private")
	sandbox, err := p.runner.cp.StartProgram(context.WithoutCancel(ctx), controlplane.Program{
		Name: p.id(), Binary: controlplane.NodeInit, Args: []string{ready, private}, Isolated: true, Network: true,
		Ready: func(context.Context, *controlplane.Process) error {
			_, err := os.Stat(ready)
			return err
		},
	})
	if err != nil {
		return err
	}
	p.mutex.Lock()
	p.sandbox = sandbox
	p.mutex.Unlock()
	inside := network{sandbox.PID()}
	if err := inside.up(p.address); err != nil {
		return err
	}
	listener, err := inside.listen(serviceAddress)
	if err != nil {
		return err
	}
	// The program gives up its lease when it is asked to end, so this is as long as the sandbox.
	forwarding, stop := context.WithCancel(context.WithoutCancel(ctx))
	passed.Go(func() {
		<-sandbox.Done()
		stop()
		_ = listener.Close()
	})
	forward(forwarding, listener, passed, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", p.runner.apiServer)
	})
	return nil
}

func (p *pod) processes() *controlplane.Process {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.sandbox
}

// dial connects to an address in the pod's network.
func (p *pod) dial(ctx context.Context, address string) (net.Conn, error) {
	sandbox := p.processes()
	if sandbox == nil {
		return nil, fmt.Errorf("pod %s has no network yet", p)
	}
	return network{sandbox.PID()}.dial(ctx, address)
}

// port is the number of a port of the container.
func (p *pod) port(name string) (int32, bool) {
	for _, port := range p.spec().Containers[0].Ports {
		if port.Name == name {
			return port.ContainerPort, true
		}
	}
	return 0, false
}

// runAgainAndAgain runs the container, and starts it anew when it ends.
func (p *pod) runAgainAndAgain(ctx context.Context, dir string) {
	for ctx.Err() == nil {
		if err := p.runContainer(ctx, dir); err != nil {
			p.runner.problem(fmt.Errorf("pod %s: %w", p, err))
		}
		p.restarts++
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func (p *pod) runContainer(ctx context.Context, dir string) error {
	process, err := p.runner.cp.StartProgram(context.WithoutCancel(ctx), controlplane.Program{
		Name: p.object.Name, Binary: controlplane.Runc, Beside: p.processes(),
		Args:  []string{"--root", filepath.Join(dir, "runc"), "run", "--bundle", dir, p.id()},
		Grace: time.Duration(ptr.Deref(p.spec().TerminationGracePeriodSeconds, 30)) * time.Second,
	})
	if err != nil {
		return err
	}
	p.runner.mutex.Lock()
	p.runner.logs = append(p.runner.logs, process.LogFile())
	p.runner.mutex.Unlock()
	p.since = metav1.Now()
	err = p.attend(ctx, process)
	process.Stop()
	return err
}

// attend calls the probes and says what comes of it, until the pod is deleted, or the container
// has ended or is to end.
func (p *pod) attend(ctx context.Context, process *controlplane.Process) error {
	container := &p.spec().Containers[0]
	now := time.Now()
	startup, liveness, readiness := newProber(container.StartupProbe, now), newProber(container.LivenessProbe, now), newProber(container.ReadinessProbe, now)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: p.since}}
	told := ""
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		started := startup == nil || startup.passed
		ready := started && readiness.succeeds()
		if now := fmt.Sprint(started, ready); now != told {
			if err := p.tell(ctx, running, started, ready); err != nil && ctx.Err() == nil {
				return err
			}
			told = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-process.Done():
			return process.Err()
		case <-ticker.C:
		}
		if !started {
			startup.call(ctx, p)
			if startup.failed() {
				return fmt.Errorf("the startup probe failed: %w", startup.err)
			}
			continue
		}
		liveness.call(ctx, p)
		readiness.call(ctx, p)
		if liveness.failed() && ctx.Err() == nil {
			return fmt.Errorf("the liveness probe failed: %w", liveness.err)
		}
	}
}

// tell writes the status of the pod.
func (p *pod) tell(ctx context.Context, state corev1.ContainerState, started, ready bool) error {
	pods := p.runner.client.CoreV1().Pods(p.object.Namespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		object, err := pods.Get(ctx, p.object.Name, metav1.GetOptions{})
		if err != nil || object.UID != p.object.UID {
			return err
		}
		p.fill(&object.Status, state, started, ready)
		_, err = pods.UpdateStatus(ctx, object, metav1.UpdateOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (p *pod) fill(status *corev1.PodStatus, state corev1.ContainerState, started, ready bool) {
	container := &p.spec().Containers[0]
	status.Phase = corev1.PodPending
	if state.Running != nil {
		status.Phase = corev1.PodRunning
	}
	if status.StartTime == nil {
		status.StartTime = ptr.To(metav1.Now())
	}
	status.PodIP, status.PodIPs = p.address, []corev1.PodIP{{IP: p.address}}
	status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: container.Name, Image: container.Image, ImageID: container.Image, State: state, Started: ptr.To(started), Ready: ready, RestartCount: p.restarts,
	}}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		value := corev1.ConditionFalse
		if ready || kind == corev1.PodInitialized {
			value = corev1.ConditionTrue
		}
		setCondition(status, kind, value)
	}
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, value corev1.ConditionStatus) {
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		if condition.Type != kind {
			continue
		}
		if condition.Status != value {
			condition.Status, condition.LastTransitionTime = value, metav1.Now()
		}
		return
	}
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: metav1.Now()})
}

// removeCgroups removes what runc leaves if it is killed.
func (p *pod) removeCgroups() error {
	var errs []error
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		paths, err := filepath.Glob(pattern + p.id())
		errs = append(errs, err)
		for _, path := range paths {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}

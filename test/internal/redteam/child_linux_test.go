// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement/controller"
)

// serve is the main function of the child process. It reads trials, runs them, and writes an outcome for each as a line of
// JSON.
func serve(in io.Reader, out io.Writer) error {
	named := map[string]Case{}
	for _, c := range Cases() {
		named[c.Name] = c
	}
	// Create all state that trials share, so that the first measurement does not include it.
	for _, where := range []Where{Device, Cluster} {
		if o := measure(Case{Text: "true"}, where); o.Answer != "true" {
			return errors.New("try nothing: " + o.Answer)
		}
	}
	answers := json.NewEncoder(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var which trial
		if err := json.Unmarshal(lines.Bytes(), &which); err != nil {
			return err
		}
		o := measure(named[which.Name], which.Where)
		o.trial = which
		if err := answers.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

// evaluate is a compiled expression.
type evaluate func(context.Context, *cel.Budget) (bool, error)

// measure runs a case at one place, and measures its time, memory and cost.
func measure(c Case, where Where) outcome {
	compile := compileOnDevices
	switch where {
	case Cluster, Report:
		compile = compileOnCluster
	case Preference:
		compile = compileValue
	}
	before := restMemory()
	start := processorTime()
	run, err := compile(c)
	o := outcome{Compiled: processorTime() - start, Answer: said(err)}
	if err == nil {
		start = processorTime()
		budget := cel.NewBudget(10 * cel.DefaultCostLimit)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(cases.Of(int(defaultWait), int(evaluationTime))))
		verdict, err := run(ctx, budget)
		cancel()
		o.Evaluated, o.Cost, o.Answer = processorTime()-start, budget.Spent(), said(err)
		if err == nil {
			o.Answer = fmt.Sprint(verdict)
		}
	}
	o.Memory = peak() - before
	return o
}

func said(err error) string {
	if err == nil {
		return ""
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	var failure *cel.Error
	if errors.As(err, &failure) {
		text = string(failure.Reason) + ": " + strings.Join(strings.Fields(failure.Message), " ")
	}
	if len(err.Error()) > 20_000 {
		text = fmt.Sprintf("(%d bytes) %s", len(err.Error()), text)
	}
	return text[:min(len(text), 100)]
}

func compileOnDevices(c Case) (evaluate, error) {
	environment, err := device.NewEnvironment(cel.Config{})
	if err != nil {
		return nil, err
	}
	expression, err := environment.Compile(context.Background(), c.Text)
	if err != nil {
		return nil, err
	}
	devices := someDevices(c)
	return func(ctx context.Context, budget *cel.Budget) (bool, error) {
		return expression.Satisfied(ctx, devices, budget)
	}, nil
}

func compileValue(c Case) (evaluate, error) {
	environment, err := device.NewEnvironment(cel.Config{})
	if err != nil {
		return nil, err
	}
	value, err := environment.CompileInt(context.Background(), c.Text)
	if err != nil {
		return nil, err
	}
	devices := someDevices(c)
	return func(ctx context.Context, budget *cel.Budget) (bool, error) {
		worth, err := value.Value(ctx, devices, budget)
		return worth > 0, err
	}, nil
}

// someDevices returns as many devices as the case requests. Each has the maximum number of attributes.
func someDevices(c Case) []*device.Device {
	devices := make([]*device.Device, max(2, c.Devices))
	for i := range devices {
		index, name := int64(i), fmt.Sprintf("%s%02d", times(60, "n"), i)
		attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: &index}, "name": {StringValue: &name}}
		for j := range 30 {
			attributes[resourceapi.QualifiedName(fmt.Sprintf("a%d", j))] = resourceapi.DeviceAttribute{StringValue: &name}
		}
		devices[i] = device.New("mla.example.com", &resourceapi.Device{Name: fmt.Sprintf("mla-%d", i), Attributes: attributes})
	}
	return devices
}

func compileOnCluster(c Case) (evaluate, error) {
	environment, err := cluster.NewEnvironment(cel.Config{})
	if err != nil {
		return nil, err
	}
	selector, err := environment.Compile(context.Background(), clusterv1beta1.ClusterSelector{
		CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{c.Text}},
	}, nil)
	if err != nil {
		return nil, err
	}
	object, err := managedCluster(c.Reported)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, budget *cel.Budget) (bool, error) {
		verdict, err := selector.Match(ctx, cluster.New(object), cluster.Hub{})
		if failure := budget.Charge(verdict.Cost); err == nil {
			err = failure
		}
		return verdict.Matches, err
	}, nil
}

// managedCluster decodes a reported cluster, as the client of celset-placement does.
func managedCluster(reported Reported) (*clusterv1.ManagedCluster, error) {
	claims := []map[string]string{}
	for name, value := range reported.Claims {
		claims = append(claims, map[string]string{"name": name, "value": value})
	}
	content, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"name": "cluster", "annotations": reported.Annotations},
		"status":   map[string]any{"allocatable": reported.Allocatable, "clusterClaims": claims},
	})
	if err != nil {
		return nil, err
	}
	if content, err = guarded(content); err != nil {
		return nil, err
	}
	object := &clusterv1.ManagedCluster{}
	return object, json.Unmarshal(content, object)
}

// guarded returns a response of the API server after the checks of celset-placement's client.
func guarded(content []byte) ([]byte, error) {
	config := &rest.Config{Host: "http://hub", Transport: answering(content)}
	controller.Guard(config, nil)
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodGet, "http://hub/apis/"+clusterv1.GroupName+"/v1/managedclusters/cluster", nil)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	return io.ReadAll(response.Body)
}

// answering is a transport that returns the same response for each request.
type answering []byte

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(a)),
	}, nil
}

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// processorTimeOf returns the processor time of another process, or zero if it does not exist.
func processorTimeOf(process int) time.Duration {
	const tick = 10 * time.Millisecond // unit of these times on Linux
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0
	}
	// Skip the name of the program, which is in parentheses and may contain any characters.
	fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
	var user, system int64
	if len(fields) < 13 {
		return 0
	}
	_, _ = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
	return time.Duration(user+system) * tick
}

// restMemory frees memory, resets the peak, and returns the memory in use.
func restMemory() int64 {
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		panic(err)
	}
	return resident(os.Getpid())
}

func resident(process int) int64 { return status(process, "VmRSS:") }

func peak() int64 { return status(os.Getpid(), "VmHWM:") }

// status returns a value in bytes from /proc/PID/status.
func status(process int, name string) int64 {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			var kilobytes int64
			_, _ = fmt.Sscanf(rest, "%d", &kilobytes)
			return kilobytes << 10
		}
	}
	return 0
}

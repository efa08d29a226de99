// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package playground answers questions of package answers without a cluster. The source has no objects: questions contain
// documents, and name the model of a machine. A panic in an answer becomes an error, because the program in a browser must go on.
package playground

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	celcompat "github.com/celset/celset/cel/compat"
	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/internal/clusterstate"
)

// Playground answers questions about documents and models of machines.
type Playground struct{ answers *answers.Answers }

// New returns a Playground for a scheduler with all features and default arguments. timeout is the time limit of one question, or 0
// for the default.
func New(timeout time.Duration) *Playground {
	args := &configv1alpha1.DynamicResourcesCELArgs{}
	configv1alpha1.SetDefaults(args)
	// The time limit of a question applies to all nodes together. Timers of the browser can't interrupt the search on one node.
	args.FilterTimeout = &metav1.Duration{}
	source := answers.Static(answers.View{Objects: &clusterstate.Objects{}, Origin: "playground"})
	return &Playground{answers.New(source, answers.Options{Features: Features(), Args: args, Timeout: timeout})}
}

// warmUp is a question whose answer needs most of the code that answers need.
const warmUp = `{"machine": "hgx-h100", "nodes": 1, "documents": "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: a}, ` +
	`spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com}}]}}}"}`

// WarmUp answers a question, because a browser compiles code when it runs the first time.
func (p *Playground) WarmUp() { _, _ = p.Answer(context.Background(), answers.Try, warmUp) }

// Features returns all features of the allocator.
func Features() structured.Features {
	features := structured.Features{
		AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true, ListTypeAttributes: true,
		PartitionableDevices: true, PrioritizedList: true,
	}
	for _, younger := range []func(*structured.Features) *bool{celcompat.CompatibilityGroups, celcompat.FractionalCapacityRange, celcompat.OptionalNodeOperations} {
		*younger(&features) = true
	}
	return features
}

// Answer answers a question. question and the result are JSON.
func (p *Playground) Answer(ctx context.Context, name, question string) (text string, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("a bug in celset prevents the answer: %v", problem)
		}
	}()
	answer, err := p.answers.Answer(ctx, name, []byte(question))
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(answer)
	return string(raw), err
}

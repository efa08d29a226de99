// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json" // decodes integers as integers, not as float64
	"sigs.k8s.io/yaml"
)

const (
	schedulerConfigKind = "KubeSchedulerConfiguration"

	defaultSchedulerConfig = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: " + schedulerConfigKind + "\n"
)

// localSchedulerConfig sets the fields of a scheduler configuration that depend on the environment: the kubeconfig and leader
// election. It does not validate other fields, because the scheduler does.
func localSchedulerConfig(content []byte, kubeconfig string, leaderElect bool) ([]byte, error) {
	jsonContent, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, fmt.Errorf("scheduler configuration: %w", err)
	}
	var config map[string]any
	if err := json.Unmarshal(jsonContent, &config); err != nil {
		return nil, fmt.Errorf("scheduler configuration: %w", err)
	}
	if kind := config["kind"]; kind != schedulerConfigKind {
		return nil, fmt.Errorf("scheduler configuration: kind is %v, want %s", kind, schedulerConfigKind)
	}
	if err := unstructured.SetNestedField(config, kubeconfig, "clientConnection", "kubeconfig"); err != nil {
		return nil, fmt.Errorf("scheduler configuration: set clientConnection.kubeconfig: %w", err)
	}
	// Without this field, the default is true. A restarted scheduler would then wait until the lease of its predecessor expires.
	_, stated, err := unstructured.NestedFieldNoCopy(config, "leaderElection", "leaderElect")
	if err != nil {
		return nil, fmt.Errorf("scheduler configuration: read leaderElection.leaderElect: %w", err)
	}
	if !stated {
		if err := unstructured.SetNestedField(config, leaderElect, "leaderElection", "leaderElect"); err != nil {
			return nil, fmt.Errorf("scheduler configuration: set leaderElection.leaderElect: %w", err)
		}
	}
	return yaml.Marshal(config)
}

// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json" // keeps integers integers
	"sigs.k8s.io/yaml"
)

const (
	schedulerConfigKind = "KubeSchedulerConfiguration"

	defaultSchedulerConfig = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: " + schedulerConfigKind + "\n"
)

// localSchedulerConfig returns a scheduler configuration with the parts that
// depend on where it runs filled in. All else is kept as it is, whatever it is:
// to judge it is up to the scheduler.
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
	// The default is true: a scheduler that is restarted would wait for the lease
	// of its predecessor to expire.
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

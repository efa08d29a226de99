// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/minor"
)

// serviceAccount is whom manifests/scheduler/rbac.yaml is about.
const serviceAccount = "system:serviceaccount:kube-system:celset-scheduler"

// cluster is what all tests share.
var cluster struct {
	*controlplane.ControlPlane
	scheduler *controlplane.Process
	manifests string // directory
}

func TestMain(m *testing.M) {
	code, err := runInCluster(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// runInCluster leaves no process behind; files only if something failed.
func runInCluster(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "celset-integration-")
	if err != nil {
		return 1, err
	}
	if err := startCluster(ctx, dir); err != nil {
		return 1, fmt.Errorf("%w\nthe components' files are in %s", err, dir)
	}
	code = m.Run()
	cluster.Stop()
	if code != 0 {
		return code, fmt.Errorf("the components' logs are in %s", cluster.LogDir())
	}
	return code, os.RemoveAll(dir)
}

// startCluster follows the manifests: RBAC first, and then the scheduler as the
// service account in it. On an error nothing keeps running.
func startCluster(ctx context.Context, dir string) (err error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	cluster.manifests = filepath.Join(root, "manifests")
	if _, err := controlplane.Build(ctx, "", os.Stderr, controlplane.Kubectl); err != nil {
		return err
	}
	cluster.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{
		DataDir:      dir,
		Progress:     os.Stderr,
		FeatureGates: minor.ClusterGates(),
		Users: []controlplane.User{{
			Name:   serviceAccount,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"},
		}},
	})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			cluster.Stop()
		}
	}()
	if _, err := kubectl(ctx, "", "apply", "-f", manifest("scheduler", "rbac.yaml")); err != nil {
		return err
	}
	config, err := sharedSchedulerConfig()
	if err != nil {
		return err
	}
	cluster.scheduler, err = cluster.StartScheduler(ctx, controlplane.SchedulerOptions{
		Config:       config,
		User:         serviceAccount,
		FeatureGates: minor.SchedulerGates(map[string]bool{v1alpha1.FeatureGate: true, "DRADevicePreemption": true}),
	})
	return err
}

func client() kubernetes.Interface { return cluster.Client() }

// manifest is the path of a file in manifests.
func manifest(elements ...string) string {
	return filepath.Join(append([]string{cluster.manifests}, elements...)...)
}

// kubectl runs kubectl as the administrator and returns what it printed.
func kubectl(ctx context.Context, namespace string, args ...string) (string, error) {
	flags := []string{
		"--kubeconfig=" + cluster.Kubeconfig(),
		"--cache-dir=" + filepath.Join(cluster.DataDir(), "kubectl"),
	}
	if namespace != "" {
		flags = append(flags, "--namespace="+namespace)
	}
	output, err := exec.CommandContext(ctx, cluster.Binary(controlplane.Kubectl), append(flags, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

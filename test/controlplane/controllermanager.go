// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// DefaultControllers returns the controllers that kube-controller-manager runs unless [Options.Controllers] is set. They handle
// claims, workloads that create pods, garbage collection, and the finalizers that the API server adds. Without controllers for
// finalizers, deleted objects would stay forever. notRun lists the controllers that don't run.
func DefaultControllers() []string {
	return []string{
		"resourceclaim-controller",
		"device-taint-eviction-controller",
		"cronjob-controller",
		"daemonset-controller",
		"deployment-controller",
		"job-controller",
		"replicaset-controller",
		"replicationcontroller-controller",
		"statefulset-controller",
		"disruption-controller",
		"resourcequota-controller",
		podGroupProtection,
		"persistentvolume-protection-controller",
		"persistentvolumeclaim-protection-controller",
		"service-cidr-controller",
		"volumeattributesclass-protection-controller",
		"garbage-collector-controller",
		"namespace-controller",
		"pod-garbage-collector-controller",
		"ttl-after-finished-controller",
		"clusterrole-aggregation-controller",
		"root-ca-certificate-publisher-controller",
		"serviceaccount-controller",
		"serviceaccount-token-controller",
	}
}

const podGroupProtection = "podgroup-protection-controller"

// younger lists the controllers that kube-controller-manager has only in the Kubernetes version of go.mod, not in older
// supported versions.
var younger = []string{podGroupProtection}

// notRun lists the controllers that are not in [DefaultControllers], grouped by the reason.
var notRun = map[string][]string{
	"they need a network, load balancers or certificates of nodes": {
		"bootstrap-signer-controller", "certificatesigningrequest-approving-controller", "certificatesigningrequest-cleaner-controller",
		"certificatesigningrequest-signing-controller", "endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller",
		"kube-apiserver-serving-clustertrustbundle-publisher-controller", "node-ipam-controller", "podcertificaterequest-cleaner-controller",
		"token-cleaner-controller",
	},
	"they would take nodes without a kubelet away": {"node-lifecycle-controller", "taint-eviction-controller", "ttl-controller"},
	"nothing mounts volumes": {
		"ephemeral-volume-controller", "persistentvolume-attach-detach-controller", "persistentvolume-binder-controller",
		"persistentvolume-expander-controller", "selinux-warning-controller",
	},
	"they need metrics of pods": {"horizontal-pod-autoscaler-controller"},
	"nobody waits for what they do": {
		"legacy-serviceaccount-token-cleaner-controller", "resourcepoolstatusrequest-controller", "storageversion-garbage-collector-controller",
		"storage-version-migrator-controller", "validatingadmissionpolicy-status-controller",
	},
}

// StartControllerManager starts kube-controller-manager if [Options.SkipControllerManager] left it out, and returns when it is
// ready. The kubeconfig gives its connection to the API server. The process runs until it is stopped, the context ends or the
// control plane stops.
func (cp *ControlPlane) StartControllerManager(ctx context.Context, kubeconfig string) (*Process, error) {
	if !cp.options.Prebuilt {
		if _, err := buildBinaries(ctx, cp.binDir, cp.progress, []string{versioned(KubeControllerManager, cp.options.Kubernetes)}); err != nil {
			return nil, err
		}
	}
	p, err := cp.startControllerManager(ctx, kubeconfig)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, p.Stop)
	return p, nil
}

func (cp *ControlPlane) startControllerManager(ctx context.Context, kubeconfig string) (*Process, error) {
	ports, err := FreePorts(1)
	if err != nil {
		return nil, err
	}
	controllers := cp.options.Controllers
	if controllers == nil {
		controllers = slices.DeleteFunc(DefaultControllers(), func(name string) bool {
			return cp.options.Kubernetes != "" && slices.Contains(younger, name)
		})
	}
	return cp.supervisor.startOne(ctx, command{
		name:   KubeControllerManager,
		binary: filepath.Join(cp.binDir, versioned(KubeControllerManager, cp.options.Kubernetes)),
		args: slices.Concat(
			cp.pki.servingArgs(ports[0]),
			delegationArgs(cp.Kubeconfig()),
			[]string{
				"--kubeconfig=" + kubeconfig,
				"--controllers=" + strings.Join(controllers, ","),
				"--leader-elect=false",
				"--root-ca-file=" + cp.pki.servingCert,
				"--service-account-private-key-file=" + cp.pki.serviceAccountKey,
				// The default is 20 requests a second. Tests that create hundreds of claims would have to wait.
				"--kube-api-qps=1000",
				"--kube-api-burst=2000",
			},
			featureGateArgs(cp.options.FeatureGates),
			cp.options.ControllerManagerArgs,
		),
		endpoint: "https://" + address(ports[0]),
		client:   cp.adminClient,
		grace:    2 * time.Second,
	}, func(p *Process) func(context.Context) error { return p.probePath("/healthz") })
}

// delegationArgs let a component ask the API server, with the administrator's rights, whether a client may read its metrics.
// The component's own rights don't change.
func delegationArgs(kubeconfig string) []string {
	return []string{
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
	}
}

// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// startAPIServer starts kube-apiserver on the port that the kubeconfigs name.
func (cp *ControlPlane) startAPIServer(ctx context.Context) error {
	return cp.supervisor.start(ctx, cp.apiServerCommand(), cp.apiServerProbe)
}

func (cp *ControlPlane) apiServerCommand() command {
	return command{
		name:     KubeAPIServer,
		binary:   filepath.Join(cp.binDir, versioned(KubeAPIServer, cp.options.Kubernetes)),
		args:     cp.apiServerArgs(),
		endpoint: cp.credentials[AdminUser].server,
		client:   cp.adminClient,
		// SIGKILL at once: on SIGTERM the server would wait up to a minute for its watchers. No data is lost, because all data
		// is in etcd.
		grace: 0,
	}
}

func (cp *ControlPlane) apiServerArgs() []string {
	return slices.Concat(
		cp.pki.servingArgs(cp.apiServerPort),
		[]string{
			"--etcd-servers=" + cp.etcdURL,
			"--token-auth-file=" + cp.tokenFile,
			"--authorization-mode=RBAC",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + cp.pki.serviceAccountKey,
			"--service-account-signing-key-file=" + cp.pki.serviceAccountKey,
			"--service-cluster-ip-range=10.96.0.0/16",
			"--allow-privileged=true",
			// Without an address, the server looks for a default route, which a sandbox may not have. The endpoints of the
			// service "kubernetes" can't contain a loopback address, so the server must not reconcile them.
			"--advertise-address=" + loopback,
			"--endpoint-reconciler-type=none",
			"--disable-admission-plugins=" + strings.Join(cp.options.disabledAdmission(), ","),
			// The API server authenticates to kubelets with this certificate, see KubeletTLS. Without kubelets it is unused.
			"--kubelet-client-certificate=" + cp.pki.kubeletClientCert,
			"--kubelet-client-key=" + cp.pki.kubeletClientKey,
			"--kubelet-certificate-authority=" + cp.pki.servingCert,
			"--kubelet-preferred-address-types=InternalIP",
		},
		featureGateArgs(cp.options.FeatureGates),
		cp.options.APIServerArgs,
	)
}

// disabledAdmission returns the admission plugins to turn off, because the controllers that they depend on do not run here.
func (o Options) disabledAdmission() []string {
	// This plugin taints new nodes as not ready. Only the node lifecycle controller would remove the taint.
	plugins := []string{"TaintNodesByCondition"}
	if !o.ServiceAccountAdmission {
		plugins = append(plugins, "ServiceAccount")
	}
	return plugins
}

// apiServerProbe succeeds when the server is ready and has created the namespaces default and kube-system. /readyz does not
// wait for these namespaces.
func (cp *ControlPlane) apiServerProbe(p *Process) func(context.Context) error {
	ready := p.probePath("/readyz")
	return func(ctx context.Context) error {
		if err := ready(ctx); err != nil {
			return err
		}
		for _, name := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault} {
			if _, err := cp.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); err != nil {
				return fmt.Errorf("namespace %s: %w", name, err)
			}
		}
		return nil
	}
}

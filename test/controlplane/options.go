// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DefaultReadyTimeout limits the time until a component is ready.
const DefaultReadyTimeout = 2 * time.Minute

// Options configure the control plane of [Start]. The zero value is a complete control plane in a temporary directory.
type Options struct {
	// DataDir holds etcd's data, keys, kubeconfigs and logs. Start creates the directory if needed. Stop keeps it, and the next
	// start with it restores the stored objects. Empty means a temporary directory that Stop removes. If the start fails, the
	// temporary directory stays, because the error refers to its logs. If the context ended the start, it is removed.
	DataDir string

	// BinDir holds the binaries. Empty means the result of [BinDir].
	BinDir string

	// Prebuilt is set if the binaries in BinDir must be used as they are. Otherwise Start and StartScheduler first build
	// outdated binaries, see [Build].
	Prebuilt bool

	// Kubernetes is the minor version of kube-apiserver and kube-controller-manager, one of [OlderKubernetes]. Empty means the
	// value of [KubernetesEnv] or, if that is not set, the version of go.mod.
	Kubernetes string

	// Progress receives a line for every step that takes longer than a second. It may be nil.
	Progress io.Writer

	// ReadyTimeout limits how long each component may take until it is ready. Zero means DefaultReadyTimeout.
	ReadyTimeout time.Duration

	// FeatureGates are Kubernetes feature gates for kube-apiserver and kube-controller-manager.
	FeatureGates map[string]bool

	// ServiceAccountAdmission turns on the admission plugin ServiceAccount. A pod is then admitted only if its service account
	// exists in its namespace (by default the account "default", which the controller manager creates). The plugin mounts the
	// account's token.
	ServiceAccountAdmission bool

	// Users can authenticate in addition to the administrator. The test grants them rights through RBAC objects. See
	// ControlPlane.KubeconfigFor.
	Users []User

	// SkipControllerManager leaves kube-controller-manager out.
	SkipControllerManager bool

	// Controllers are the controllers of kube-controller-manager. Nil means [DefaultControllers].
	Controllers []string

	// SkipKwok leaves kwok out. Then only static nodes become ready, and all pods stay Pending.
	SkipKwok bool

	// APIServerArgs, ControllerManagerArgs and KwokArgs are additional flags. If this package sets a flag of the same name,
	// they override it.
	APIServerArgs         []string
	ControllerManagerArgs []string
	KwokArgs              []string
}

func (o Options) readyTimeout() time.Duration {
	if o.ReadyTimeout > 0 {
		return o.ReadyTimeout
	}
	return DefaultReadyTimeout
}

// validate rejects incompatible options before any process starts.
func (o Options) validate() error {
	if o.ServiceAccountAdmission && o.SkipControllerManager {
		return fmt.Errorf("options: ServiceAccountAdmission needs the controller manager, which SkipControllerManager leaves out: no pod could be created without its service accounts")
	}
	if o.Kubernetes != "" && !slices.Contains(OlderKubernetes, o.Kubernetes) {
		return fmt.Errorf("options: Kubernetes %q is none of %s, nor empty for that of go.mod", o.Kubernetes, strings.Join(OlderKubernetes, ", "))
	}
	return validateUsers(o.Users)
}

// serverBinaries returns the names of the binaries that Start runs.
func (o Options) serverBinaries() []string {
	names := []string{Etcd, versioned(KubeAPIServer, o.Kubernetes)}
	if !o.SkipControllerManager {
		names = append(names, versioned(KubeControllerManager, o.Kubernetes))
	}
	if !o.SkipKwok {
		names = append(names, Kwok)
	}
	return names
}

// featureGateArgs renders gates as a command line flag, sorted by name, so that command lines in logs can be compared. It
// returns nil if there are no gates.
func featureGateArgs(gates map[string]bool) []string {
	if len(gates) == 0 {
		return nil
	}
	pairs := make([]string, 0, len(gates))
	for name, on := range gates {
		pairs = append(pairs, name+"="+strconv.FormatBool(on))
	}
	slices.Sort(pairs)
	return []string{"--feature-gates=" + strings.Join(pairs, ",")}
}

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
	// DataDir holds etcd's data, keys, kubeconfigs and logs. Start creates it if needed, and it stays when the control plane stops;
	// another start in it restores the stored objects. Empty: a temporary directory that Stop removes. After a failed start the
	// temporary directory stays, because the error refers to its logs, unless the context ended the start.
	DataDir string

	// BinDir holds the binaries. Empty: the result of [BinDir].
	BinDir string

	// Prebuilt uses the binaries in BinDir as they are. Otherwise Start and StartScheduler first bring their binaries up to date,
	// see [Build].
	Prebuilt bool

	// Kubernetes is the minor version of kube-apiserver and kube-controller-manager, one of [OlderKubernetes]. Empty: the value of
	// [KubernetesEnv], or the version of go.mod.
	Kubernetes string

	// Progress receives a line for every step that takes longer than a second.
	// Nil: no lines.
	Progress io.Writer

	// ReadyTimeout limits how long each component may take until it is ready.
	// Zero: DefaultReadyTimeout.
	ReadyTimeout time.Duration

	// FeatureGates are Kubernetes feature gates for kube-apiserver and
	// kube-controller-manager.
	FeatureGates map[string]bool

	// ServiceAccountAdmission turns on the admission plugin ServiceAccount. Pods then need their service account (by default
	// "default") in their namespace, and get its token mounted. Only the controller manager creates "default".
	ServiceAccountAdmission bool

	// Users can authenticate in addition to the administrator. RBAC objects grant their rights; see ControlPlane.KubeconfigFor.
	Users []User

	// SkipControllerManager leaves kube-controller-manager out.
	SkipControllerManager bool

	// Controllers are the controllers of kube-controller-manager. Nil: [DefaultControllers].
	Controllers []string

	// SkipKwok leaves kwok out. Then only static nodes become ready, and all pods stay Pending.
	SkipKwok bool

	// APIServerArgs, ControllerManagerArgs and KwokArgs are further flags. They override our flags with the same name.
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

// featureGateArgs renders gates as a command line flag, sorted so that command lines in logs can be compared. It returns nil if
// there are no gates.
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

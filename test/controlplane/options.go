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

// DefaultReadyTimeout is how long one component may take until it is ready.
const DefaultReadyTimeout = 2 * time.Minute

// Options say which control plane [Start] starts. The zero value is a whole
// one, in a temporary directory.
type Options struct {
	// DataDir holds etcd's data, keys, kubeconfigs and logs. It is created if it
	// does not exist and kept when the control plane stops; starting in it again
	// brings the stored objects back. Empty: a temporary directory that Stop
	// removes. After a failed start the temporary directory stays, because the
	// error refers to the logs in it; not if it was the context that ended it.
	DataDir string

	// BinDir holds the binaries. Empty: what [BinDir] returns.
	BinDir string

	// Prebuilt uses the binaries in BinDir as they are. Otherwise Start and
	// StartScheduler bring those they need up to date first, see [Build].
	Prebuilt bool

	// Kubernetes is the minor version of kube-apiserver and kube-controller-manager, one of
	// [OlderKubernetes]. Empty: what [KubernetesEnv] says, or that of go.mod.
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

	// ServiceAccountAdmission turns the admission plugin ServiceAccount on: pods
	// then need the service account they name (or "default") in their namespace,
	// and get its token mounted. It takes the controller manager to create
	// "default".
	ServiceAccountAdmission bool

	// Users can authenticate beside the administrator. What they may do is up to
	// RBAC objects; see ControlPlane.KubeconfigFor.
	Users []User

	// SkipControllerManager leaves kube-controller-manager out.
	SkipControllerManager bool

	// Controllers are the ones kube-controller-manager runs. Nil:
	// [DefaultControllers].
	Controllers []string

	// SkipKwok leaves kwok out: then only static nodes become ready, and no pod
	// leaves the phase Pending.
	SkipKwok bool

	// APIServerArgs, ControllerManagerArgs and KwokArgs are further command line
	// flags. One that repeats a flag of ours overrides it.
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

// validate rejects options that can't work together, before anything runs.
func (o Options) validate() error {
	if o.ServiceAccountAdmission && o.SkipControllerManager {
		return fmt.Errorf("options: ServiceAccountAdmission needs the controller manager, which SkipControllerManager leaves out: no pod could be created without its service accounts")
	}
	if o.Kubernetes != "" && !slices.Contains(OlderKubernetes, o.Kubernetes) {
		return fmt.Errorf("options: Kubernetes %q is none of %s, nor empty for that of go.mod", o.Kubernetes, strings.Join(OlderKubernetes, ", "))
	}
	return validateUsers(o.Users)
}

// serverBinaries are the names of the binaries that Start runs.
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

// featureGateArgs renders gates as a command line flag, sorted so that command
// lines in logs compare; none if there are no gates.
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

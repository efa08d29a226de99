// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A ControlPlane is a control plane that runs or has run. Its methods may be called concurrently.
type ControlPlane struct {
	options   Options
	progress  *progress
	dir       string
	binDir    string
	temporary bool                 // dir is removed by Stop
	lock      *fileutil.LockedFile // held on dir while the control plane runs

	pki           pki
	tokenFile     string
	apiServerPort int
	etcdURL       string
	etcdPeerURL   string
	credentials   map[string]credentials // by user name
	client        kubernetes.Interface
	adminClient   *http.Client // trusts our servers and carries the admin's token
	plainClient   *http.Client // for servers that need neither our CA nor a token

	stopOnce   sync.Once
	supervisor *supervisor
}

// Start starts a control plane and returns when all its components are ready. It runs until Stop is called or the context ends.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	cp, err := prepare(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	if err := cp.startComponents(ctx); err != nil {
		// Keep the temporary directory, because the error refers to its logs. But remove it if the caller canceled the start.
		cp.temporary = cp.temporary && ctx.Err() != nil
		cp.Stop()
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	context.AfterFunc(ctx, cp.Stop)
	return cp, nil
}

func (cp *ControlPlane) startComponents(ctx context.Context) error {
	if err := cp.startEtcd(ctx); err != nil {
		return err
	}
	if err := cp.startAPIServer(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	if !cp.options.SkipControllerManager {
		group.Go(func() error {
			_, err := cp.startControllerManager(ctx, cp.Kubeconfig())
			return err
		})
	}
	if !cp.options.SkipKwok {
		group.Go(func() error { return cp.startKwok(ctx) })
	}
	return group.Wait()
}

// Wait returns nil when the context ends, or the error of the first component that ended by itself. Only one call of Wait gets
// that error.
func (cp *ControlPlane) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-cp.supervisor.failed:
		return err
	}
}

// Stop ends all processes, clients before servers, and returns when they have ended. A second call does nothing.
func (cp *ControlPlane) Stop() {
	cp.stopOnce.Do(func() {
		start := time.Now()
		cp.supervisor.stop()
		cp.adminClient.CloseIdleConnections()
		cp.plainClient.CloseIdleConnections()
		if err := cp.releaseDir(); err != nil {
			cp.progress.printf("control plane: %v", err)
		}
		if took := time.Since(start); took > slowStep {
			cp.progress.printf("control plane stopped after %.1fs", took.Seconds())
		}
	})
}

// releaseDir unlocks the data directory, and removes it if it is temporary.
func (cp *ControlPlane) releaseDir() error {
	err := cp.lock.Close()
	if cp.temporary {
		err = errors.Join(err, os.RemoveAll(cp.dir))
	}
	return err
}

// DataDir returns the directory of the control plane's files.
func (cp *ControlPlane) DataDir() string { return cp.dir }

// LogDir returns the directory of the logs. Each process has its own log file.
func (cp *ControlPlane) LogDir() string { return filepath.Join(cp.dir, "logs") }

// Binary returns the path of a binary in the binary directory, such as [Kubectl]. Build creates the binary; Binary does not
// check that it exists.
func (cp *ControlPlane) Binary(name string) string { return filepath.Join(cp.binDir, name) }

// Client returns a client of the API server with the administrator's rights.
func (cp *ControlPlane) Client() kubernetes.Interface { return cp.client }

// RESTConfig returns a client configuration with the administrator's rights. The caller may change it.
func (cp *ControlPlane) RESTConfig() *rest.Config {
	return cp.credentials[AdminUser].restConfig()
}

// RESTConfigFor returns a client configuration for a user in [Options.Users].
func (cp *ControlPlane) RESTConfigFor(user string) (*rest.Config, error) {
	credentials, err := cp.credentialsFor(user)
	if err != nil {
		return nil, err
	}
	return credentials.restConfig(), nil
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (cp *ControlPlane) Kubeconfig() string { return kubeconfigPath(cp.dir, AdminUser) }

// KubeconfigFor returns the path of the kubeconfig of a user in [Options.Users].
func (cp *ControlPlane) KubeconfigFor(user string) (string, error) {
	if _, err := cp.credentialsFor(user); err != nil {
		return "", err
	}
	return kubeconfigPath(cp.dir, user), nil
}

func (cp *ControlPlane) credentialsFor(user string) (credentials, error) {
	c, ok := cp.credentials[user]
	if !ok {
		return credentials{}, fmt.Errorf("user %q is unknown to the control plane: name it in Options.Users", user)
	}
	return c, nil
}

// Processes returns the running processes in the order of their start.
func (cp *ControlPlane) Processes() []*Process {
	return cp.supervisor.running()
}

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

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// prepare does all work before the first process: binaries, the data directory, keys, users and clients.
func prepare(ctx context.Context, options Options) (_ *ControlPlane, err error) {
	if options.Kubernetes == "" {
		options.Kubernetes = os.Getenv(KubernetesEnv)
	}
	if err := options.validate(); err != nil {
		return nil, err
	}
	cp := &ControlPlane{
		options:     options,
		progress:    newProgress(options.Progress),
		plainClient: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()},
	}
	if err := cp.prepareBinaries(ctx); err != nil {
		return nil, err
	}
	if err := cp.prepareDir(); err != nil {
		return nil, err
	}
	if err := cp.prepareAccess(); err != nil {
		return nil, errors.Join(err, cp.releaseDir())
	}
	cp.supervisor = &supervisor{
		progress: cp.progress, logDir: cp.LogDir(), readyTimeout: options.readyTimeout(),
		failed: make(chan error, 1), starts: map[string]int{},
	}
	return cp, nil
}

func (cp *ControlPlane) prepareBinaries(ctx context.Context) (err error) {
	if !cp.options.Prebuilt {
		cp.binDir, err = buildBinaries(ctx, cp.options.BinDir, cp.progress, cp.options.serverBinaries())
		return err
	}
	cp.binDir = cp.options.BinDir
	if cp.binDir == "" {
		cp.binDir, err = BinDir()
	}
	return err
}

// prepareDir creates the data directory if needed and locks it.
func (cp *ControlPlane) prepareDir() (err error) {
	cp.temporary = cp.options.DataDir == ""
	if cp.temporary {
		cp.dir, err = os.MkdirTemp("", "celset-controlplane-")
	} else {
		cp.dir, err = filepath.Abs(cp.options.DataDir)
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := os.MkdirAll(cp.dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	cp.lock, err = tryLockFile(filepath.Join(cp.dir, "lock"))
	if errors.Is(err, fileutil.ErrLocked) {
		return fmt.Errorf("data directory %s: another control plane runs in it: stop that one or choose another directory", cp.dir)
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

// prepareAccess chooses the addresses of the API server and of etcd, creates the users, and writes the token file and the
// kubeconfigs.
func (cp *ControlPlane) prepareAccess() (err error) {
	if cp.pki, err = newPKI(cp.dir); err != nil {
		return err
	}
	ports, err := FreePorts(3)
	if err != nil {
		return err
	}
	cp.apiServerPort = ports[0]
	cp.etcdURL, cp.etcdPeerURL = "http://"+address(ports[1]), "http://"+address(ports[2])
	accounts := newAccounts(cp.options.Users)
	if cp.tokenFile, err = writeTokenFile(cp.dir, accounts); err != nil {
		return err
	}
	if cp.credentials, err = writeKubeconfigs(cp.dir, "https://"+address(cp.apiServerPort), cp.pki.caCert, accounts); err != nil {
		return err
	}
	return cp.newClients()
}

func writeTokenFile(dir string, accounts []account) (file string, err error) {
	tokens, err := tokenFile(accounts)
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "tokens.csv")
	return file, os.WriteFile(file, tokens, 0o600)
}

func writeKubeconfigs(dir, server string, caCert []byte, accounts []account) (map[string]credentials, error) {
	all := make(map[string]credentials, len(accounts))
	for _, a := range accounts {
		c := credentials{server: server, caCert: caCert, user: a}
		if err := c.writeKubeconfig(dir); err != nil {
			return nil, err
		}
		all[a.Name] = c
	}
	return all, nil
}

func (cp *ControlPlane) newClients() (err error) {
	config := cp.RESTConfig()
	if cp.adminClient, err = rest.HTTPClientFor(config); err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	if cp.client, err = kubernetes.NewForConfigAndClient(config, cp.adminClient); err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	return nil
}

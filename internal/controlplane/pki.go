// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// pki are the key files of a control plane.
type pki struct {
	servingCert       string // PEM, followed by the CA that signed it
	servingKey        string
	serviceAccountKey string
	caCert            []byte // the content of servingCert
}

// newPKI writes the keys into a directory. All servers share one serving
// certificate: they share one address, and nobody talks to them from elsewhere.
func newPKI(dir string) (pki, error) {
	cert, key, err := certutil.GenerateSelfSignedCertKey(loopback, nil, []string{"localhost"})
	if err != nil {
		return pki{}, fmt.Errorf("serving certificate: %w", err)
	}
	keys := pki{
		servingCert:       filepath.Join(dir, "serving.crt"),
		servingKey:        filepath.Join(dir, "serving.key"),
		serviceAccountKey: filepath.Join(dir, "service-account.key"),
		caCert:            cert,
	}
	return keys, errors.Join(
		os.WriteFile(keys.servingCert, cert, 0o600),
		os.WriteFile(keys.servingKey, key, 0o600),
		ensureServiceAccountKey(keys.serviceAccountKey),
	)
}

// ensureServiceAccountKey keeps a key that exists: tokens stored in etcd are
// signed with it.
func ensureServiceAccountKey(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	return keyutil.WriteKey(path, key)
}

// servingArgs are the flags of a Kubernetes server that listens on a port of
// the loopback interface.
func (k pki) servingArgs(port int) []string {
	return []string{
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + k.servingCert,
		"--tls-private-key-file=" + k.servingKey,
	}
}

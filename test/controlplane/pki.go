// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// pki holds the paths of a control plane's keys and certificates.
type pki struct {
	servingCert       string // PEM, followed by the CA that signed it
	servingKey        string
	serviceAccountKey string
	kubeletClientCert string // PEM, the client certificate of the API server for kubelets; self-signed, so also its own CA
	kubeletClientKey  string
	caCert            []byte // PEM, the certificates in the file servingCert
}

// newPKI creates the keys in a directory. All servers share one serving certificate, because they all listen on the loopback
// address.
func newPKI(dir string) (pki, error) {
	cert, key, err := certutil.GenerateSelfSignedCertKey(loopback, nil, []string{"localhost"})
	if err != nil {
		return pki{}, fmt.Errorf("serving certificate: %w", err)
	}
	keys := pki{
		servingCert:       filepath.Join(dir, "serving.crt"),
		servingKey:        filepath.Join(dir, "serving.key"),
		serviceAccountKey: filepath.Join(dir, "service-account.key"),
		kubeletClientCert: filepath.Join(dir, "kubelet-client.crt"),
		kubeletClientKey:  filepath.Join(dir, "kubelet-client.key"),
		caCert:            cert,
	}
	return keys, errors.Join(
		os.WriteFile(keys.servingCert, cert, 0o600),
		os.WriteFile(keys.servingKey, key, 0o600),
		ensureServiceAccountKey(keys.serviceAccountKey),
		writeClientCert(keys.kubeletClientCert, keys.kubeletClientKey),
	)
}

// writeClientCert writes a self-signed certificate. A server that trusts it as a CA trusts no other client.
func writeClientCert(certPath, keyPath string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("client certificate: %w", err)
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: "kube-apiserver"}, key)
	if err != nil {
		return fmt.Errorf("client certificate: %w", err)
	}
	pemKey, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("client certificate: %w", err)
	}
	pemCert := pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: cert.Raw})
	return errors.Join(os.WriteFile(certPath, pemCert, 0o600), os.WriteFile(keyPath, pemKey, 0o600))
}

// ensureServiceAccountKey creates the key that signs service account tokens. It keeps an existing key, because objects in etcd
// may contain tokens that it signed.
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

// servingArgs are the flags of a Kubernetes server that listens on a port of the loopback interface.
func (k pki) servingArgs(port int) []string {
	return []string{
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + k.servingCert,
		"--tls-private-key-file=" + k.servingKey,
	}
}

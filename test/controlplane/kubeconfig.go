// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"net/url"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// clusterName is the name of the cluster and the context in kubeconfigs.
const clusterName = "celset-local"

// credentials hold the API server's address, its CA certificate, and the token of one user.
type credentials struct {
	server string // URL
	caCert []byte // PEM
	user   account
}

// kubeconfig returns a kubeconfig with the credentials. It contains no relative paths, so it works in any directory.
func (c credentials) kubeconfig() clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters[clusterName] = &clientcmdapi.Cluster{Server: c.server, CertificateAuthorityData: c.caCert}
	config.AuthInfos[c.user.Name] = &clientcmdapi.AuthInfo{Token: c.user.token}
	config.Contexts[clusterName] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: c.user.Name}
	config.CurrentContext = clusterName
	return *config
}

// restConfig returns a configuration for clients in this process. Client-side rate limits are off, because the API server has
// its own.
func (c credentials) restConfig() *rest.Config {
	return &rest.Config{
		Host:            c.server,
		BearerToken:     c.user.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.caCert},
		QPS:             -1,
	}
}

// writeKubeconfig writes the user's kubeconfig into a directory. Only the owner can read the file.
func (c credentials) writeKubeconfig(dir string) error {
	if err := clientcmd.WriteToFile(c.kubeconfig(), kubeconfigPath(dir, c.user.Name)); err != nil {
		return fmt.Errorf("kubeconfig of user %s: %w", c.user.Name, err)
	}
	return nil
}

// kubeconfigPath returns the path of a user's kubeconfig. User names may contain slashes.
func kubeconfigPath(dir, user string) string {
	return filepath.Join(dir, url.PathEscape(user)+".kubeconfig")
}

// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

func TestTokenFile(t *testing.T) {
	content, err := tokenFile([]account{
		{User: User{Name: "one"}, token: "t1"},
		{User: User{Name: "system:two", Groups: []string{"g", "system:h"}}, token: "t2"},
		{User: User{Name: `quo"ted, with comma`, Groups: []string{"g"}}, token: "t3"},
	})
	require.NoError(t, err)
	want := `t1,one,one
t2,system:two,system:two,"g,system:h"
t3,"quo""ted, with comma","quo""ted, with comma",g
`
	require.Empty(t, cmp.Diff(want, string(content)))
}

func TestNewAccounts(t *testing.T) {
	accounts := newAccounts([]User{{Name: "alice"}})
	require.Len(t, accounts, 2)
	require.Equal(t, User{Name: AdminUser, Groups: []string{"system:masters"}}, accounts[0].User)
	require.Equal(t, "alice", accounts[1].Name)
	require.NotEqual(t, accounts[0].token, accounts[1].token)
	require.GreaterOrEqual(t, len(accounts[0].token), 26, "128 bits in base32")
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	c := credentials{server: "https://127.0.0.1:1", caCert: []byte("ca"), user: account{User: User{Name: "team/alice"}, token: "secret"}}
	require.NoError(t, c.writeKubeconfig(dir))

	path := kubeconfigPath(dir, "team/alice")
	require.Equal(t, filepath.Join(dir, "team%2Falice.kubeconfig"), path)
	config, err := clientcmd.BuildConfigFromFlags("", path)
	require.NoError(t, err)
	ours := c.restConfig()
	require.Equal(t, "https://127.0.0.1:1", config.Host)
	require.Equal(t, ours.Host, config.Host)
	require.Equal(t, "secret", config.BearerToken)
	require.Equal(t, ours.BearerToken, config.BearerToken)
	require.Equal(t, []byte("ca"), config.CAData)
	require.Equal(t, ours.CAData, config.CAData)
}

package belfry

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func folder(t *testing.T, reference string, key []byte) KeyFolder {
	path := filepath.Join(t.TempDir(), "keys")
	file := filepath.Join(path, reference)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, key, 0o600)); err != nil {
		t.Fatal(err)
	}
	return KeyFolder(path)
}

func TestEncryptedPayloads(t *testing.T) {
	for _, each := range load(t).Encrypted {
		encryption := Encryption{folder(t, each.Reference, each.Key.bytes(t))}
		payload, sealed := each.Payload.bytes(t), each.Sealed.bytes(t)
		event := FiredEvent{Tenant: each.Tenant, Record: &kgo.Record{
			Value: sealed, Headers: []kgo.RecordHeader{header(keyHeader, each.Names)},
		}}
		opened, err := encryption.Open(event)
		if each.Payload == nil {
			if !errors.Is(err, ErrNotDecrypted) {
				t.Errorf("%+v is opened: %s", each, opened)
			}
			continue
		}
		if err != nil || !bytes.Equal(opened, payload) {
			t.Errorf("%+v: %x %v", each, opened, err)
		}
		asked, err := encryption.Seal(Schedule{Tenant: each.Tenant, Payload: payload})
		named, _ := last(asked.Headers, keyHeader)
		if err != nil || named != each.Reference || !bytes.Equal(asked.Payload, sealed) {
			t.Errorf("%+v: %x under %s, %v", each, asked.Payload, named, err)
		}
	}
}

func TestKeysOfAFolder(t *testing.T) {
	keys := folder(t, "shop/k9", make([]byte, keyBytes))
	encryption := Encryption{keys}
	for name, key := range map[string][]byte{"k10": make([]byte, keyBytes), "k11.new": {1}, "other": {1}} {
		if err := os.WriteFile(filepath.Join(string(keys), "shop", name), key, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := keys.Current("shop"); err != nil || found != "shop/k10" {
		t.Error(found, err)
	}
	sealed, err := encryption.Seal(Schedule{Tenant: "shop", Payload: []byte("4711"), Headers: []kgo.RecordHeader{header("a", "b")}})
	if err != nil || len(sealed.Headers) != 2 || len(sealed.Payload) != 4+block {
		t.Error(sealed, err)
	}
	if plain, err := encryption.Seal(Schedule{Tenant: "nobody"}); err != nil || len(plain.Headers) != 0 {
		t.Error("an empty payload needs no key", err)
	}
	for _, tenant := range []string{"nobody", "..", "a/b", ""} {
		if _, err := encryption.Seal(Schedule{Tenant: tenant, Payload: []byte("x")}); !errors.Is(err, fs.ErrNotExist) {
			t.Error(tenant, err)
		}
	}
	for _, reference := range []string{"../k1", "shop/k1/../k10", "shop/k0", "/etc/passwd", ""} {
		if _, err := keys.Named(reference); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Error(reference, err)
		}
	}
	record := &kgo.Record{Value: []byte("as it is")}
	if found, err := encryption.OpenRecord("shop", record); err != nil || string(found) != "as it is" {
		t.Error(string(found), err)
	}
	// Shredded: nothing reads it any more.
	record = &kgo.Record{Value: sealed.Payload, Headers: sealed.Headers}
	if found, err := encryption.OpenRecord("", record); err != nil || string(found) != "4711" {
		t.Error(string(found), err)
	}
	if err := os.RemoveAll(filepath.Join(string(keys), "shop")); err != nil {
		t.Fatal(err)
	}
	if _, err := encryption.OpenRecord("shop", record); !errors.Is(err, ErrNotDecrypted) || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

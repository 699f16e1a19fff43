package belfry

import (
	"bytes"
	"encoding/hex"
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

type anyKey struct{}

func (anyKey) Current(tenant string) (string, error) { return tenant + "/k1", nil }

func (anyKey) Named(reference string) ([]byte, error) { panic("asked for " + reference) }

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

// The vector of RFC 5297, A.1: its keys have half the length.
func TestTheVectorOfTheRFC(t *testing.T) {
	unhex := func(text string) []byte {
		found, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	cipher, err := newSIV(unhex("fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"))
	if err != nil {
		t.Fatal(err)
	}
	text, datum := unhex("112233445566778899aabbccddee"), unhex("101112131415161718191a1b1c1d1e1f2021222324252627")
	sealed := cipher.seal(text, datum)
	if !bytes.Equal(sealed, unhex("85632d07c6e8f37f950acd320a2ecc9340c02b9690c4dc04daef7f6afe5c")) {
		t.Errorf("%x", sealed)
	}
	if opened, ok := cipher.open(sealed, datum); !ok || !bytes.Equal(opened, text) {
		t.Errorf("%x %v", opened, ok)
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
		// Nor is a Keys that looks at no name ever asked for it.
		forged := &kgo.Record{Value: []byte("x"), Headers: []kgo.RecordHeader{header(keyHeader, reference)}}
		if _, err := (Encryption{anyKey{}}).OpenRecord("", forged); !errors.Is(err, ErrNotDecrypted) {
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

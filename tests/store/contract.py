"""What every Store must do. Subclass it with a `store` fixture to test your own:

    class TestMyStore(ManyContract):
        @pytest.fixture
        def store(self): return MyStore()

`StoreContract` alone is for a store that holds one artefact of each kind.
"""

import pytest

from assay.errors import UserError
from assay.interfaces import Store
from assay.records import ROWS_FILE, Kind, Manifest

KINDS: list[Kind] = list(ROWS_FILE)
HARD_IDS = [
    "a/b",
    "..",
    "",
    "ä ö",
    "A",
    "a",
    "x" * 10_000,
    "a~b",
    "line\nfeed",
    "../../../etc/passwd",
]


class StoreContract:
    only = "only"

    @pytest.mark.parametrize("kind", KINDS)
    def test_an_unknown_artefact(self, store: Store, kind: Kind) -> None:
        assert store.ids(kind) == []
        assert store.manifest(kind, self.only) is None
        assert list(store.log(kind, self.only).scan()) == []
        assert store.log(kind, self.only).segments() == []
        store.delete(kind, self.only)
        assert store.ids(kind) == []

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_manifest_comes_back_as_it_was(self, store: Store, kind: Kind) -> None:
        manifest = Manifest(
            kind=kind,
            id=self.only,
            name="Näme",
            created=1.5,
            counts={"ok": 3},
            inputs=[{"dataset": "d"}],
            labels=["b", "a"],
            metadata={"nested": {"x": [1, None]}},
        )
        store.put_manifest(manifest)
        assert store.manifest(kind, self.only) == manifest
        assert store.ids(kind) == [self.only]
        manifest.complete = True
        manifest.metadata["nested"]["x"].append(2)
        assert store.manifest(kind, self.only) != manifest  # the store keeps its own copy
        store.put_manifest(manifest)
        assert store.manifest(kind, self.only) == manifest

    def test_kinds_do_not_mix(self, store: Store) -> None:
        for kind in KINDS:
            store.put_manifest(Manifest(kind=kind, id=self.only, name=kind))
            store.log(kind, self.only).append(kind.encode() + b"\n")
        for kind in KINDS:
            found = store.manifest(kind, self.only)
            assert found is not None
            assert found.name == kind
            assert [line for _, line in store.log(kind, self.only).scan()] == [kind.encode()]
        store.delete("run", self.only)
        assert store.manifest("run", self.only) is None
        assert store.manifest("evaluation", self.only) is not None

    def test_the_logs_of_an_artefact_do_not_mix(self, store: Store) -> None:
        for name in ("", "calls", "traces", "superseded", "rejected"):
            store.log("run", self.only, name).append(f"{name}\n".encode())
        for name in ("", "calls", "traces", "superseded", "rejected"):
            assert [line for _, line in store.log("run", self.only, name).scan()] == [name.encode()]
        with pytest.raises(UserError, match="there is no log 'call'"):
            store.log("run", self.only, "call")

    def test_a_log_keeps_what_was_appended_before_it_was_asked_for_again(
        self, store: Store
    ) -> None:
        first = store.log("run", self.only)
        first.append(b"1\n")
        second = store.log("run", self.only)
        second.replace([b"2\n"])
        first.append(b"3\n")  # must not go to the file that was replaced
        assert [line for _, line in store.log("run", self.only).scan()] == [b"2", b"3"]

    def test_deleted_is_gone_and_may_be_made_again(self, store: Store) -> None:
        store.put_manifest(Manifest(kind="run", id=self.only))
        for name in ("", "superseded", "rejected", "calls"):
            store.log("run", self.only, name).append(b"1\n")
        store.delete("run", self.only)
        assert store.ids("run") == []
        for name in ("", "superseded", "rejected", "calls"):
            assert list(store.log("run", self.only, name).scan()) == []
        store.log("run", self.only).append(b"2\n")
        assert [line for _, line in store.log("run", self.only).scan()] == [b"2"]

    def test_the_lock_may_be_taken_again_by_its_holder(self, store: Store) -> None:
        with store.lock("run", self.only), store.lock("run", self.only):
            store.put_manifest(Manifest(kind="run", id=self.only))
        with store.lock("run", self.only):
            pass


class ManyContract(StoreContract):
    def test_any_text_is_an_id(self, store: Store) -> None:
        for id in HARD_IDS:
            store.put_manifest(Manifest(kind="run", id=id))
            store.log("run", id).append(id[:9].encode().replace(b"\n", b" ") + b"\n")
        assert store.ids("run") == sorted(HARD_IDS)
        for id in HARD_IDS:
            manifest = store.manifest("run", id)
            assert manifest is not None
            assert manifest.id == id
            assert [line for _, line in store.log("run", id).scan()] == [
                id[:9].encode().replace(b"\n", b" ")
            ]
        for id in HARD_IDS:
            store.delete("run", id)
        assert store.ids("run") == []

#!/bin/sh
# Plays walprobe's child process for tests/worker.rs, by the name of an oddity in $FAKE.
# The parent starts it as `fake-worker.sh worker [--clean DIR [--run ID]]` in builds with debug
# assertions when WALPROBE_TEST_WORKER names it. Every process that it leaves can be found
# by $FAKE_MARK in its environment.
set -u

say() { printf '%s\n' "$1"; }
doing() { say "{\"event\":\"doing\",\"probe\":\"$1\",\"comparison\":\"$2\",\"case\":\"$3\",\"round\":$4}"; }
alive() { say "{\"event\":\"alive\",\"bytes_written\":$1}"; }
row() {
    say "{\"event\":\"rows\",\"done\":$5,\"rows\":[{\"probe\":\"$1\",\"comparison\":\"$2\",\"case\":\"$3\",\"status\":\"ok\",\"ops\":$4,\"flushes_per_op\":1.0}]}"
}
planned() {
    # The case's length tells a group's cases apart.
    printf '{"probe":"%s","comparison":"%s","case":"%s","baseline":%s,"group":%s,"index":%s,"bytes":1048576,"seconds":1.5,"file_bytes":16777216}' "$@" "${#3}"
}
finish() {
    rmdir "$scratch" 2>/dev/null
    say "{\"event\":\"done\",\"bytes_written\":4096,\"left_behind\":[],\"fault\":null,\"ended_by\":$1}"
    exit 0
}
hang() { exec sleep 1000; }

if [ "${2-}" = --clean ]; then
    scratch="$3/.walprobe-fake"
    case "${FAKE_CLEAN-}" in
        hang) hang ;;
        left) say "{\"done\":{\"removed\":[],\"left\":[[\"$scratch\",\"Permission denied\"]],\"running\":[]}}" ;;
        runs) say "{\"done\":{\"removed\":[],\"left\":[],\"running\":[\"$scratch\"]}}" ;;
        refuses) say "{\"refused\":{\"message\":\"cannot use $3: Not a directory (os error 20)\",\"hint\":\"give a directory\"}}" ;;
        dies) kill -9 $$ ;;
        *)
            if rmdir "$scratch" 2>/dev/null; then removed="\"$scratch\""; else removed=; fi
            say "{\"done\":{\"removed\":[$removed],\"left\":[],\"running\":[]}}" ;;
    esac
    exit 0
fi

read -r request || exit 1
dir=$(printf '%s' "$request" | sed 's/.*"dir":"\([^"]*\)".*/\1/')
scratch="$dir/.walprobe-fake"
looks=no
case "$request" in *'"dry_run":true'*) looks=yes ;; esac

if [ $looks = yes ]; then
    case "$FAKE" in
        look-refuses)
            say "{\"event\":\"refused\",\"message\":\"cannot use $dir: Read-only file system (os error 30)\",\"hint\":\"remount it read-write\"}"
            exit 0 ;;
        look-refuses-b)
            case "$dir" in */b)
                say "{\"event\":\"refused\",\"message\":\"cannot use $dir: not a directory\",\"hint\":null}"
                exit 0 ;;
            esac ;;
        look-hangs) hang ;;
        look-dies) kill -9 $$ ;;
    esac
fi

say "{\"event\":\"facts\",\"dir\":\"$dir\",\"host\":{\"host.kernel\":{\"value\":\"6.1\",\"source\":\"uname\"}},\"target\":{\"fs.type\":{\"value\":\"ext4\",\"source\":\"statfs\"}},\"devices\":[]}"
say "{\"event\":\"plan\",\"cases\":[$(planned durability check fdatasync null 0),$(planned sync commit fdatasync '"fdatasync"' 1),$(planned sync commit fsync '"fdatasync"' 1),$(planned recycle life new+zero '"new+zero"' 2)]}"
[ $looks = yes ] && finish null

[ "$FAKE" = refuses-late ] && {
    say "{\"event\":\"refused\",\"message\":\"cannot use $dir: No space left on device (os error 28)\",\"hint\":null}"
    exit 0
}
mkdir "$scratch" || exit 1
say "{\"event\":\"scratch\",\"path\":\"$scratch\"}"
doing durability check fdatasync 0
row durability check fdatasync 64 true
say '{"event":"durability","durability":{"verdict":"flushes-seen","may_recommend":true,"text":"each sync sent a flush","grounds":[{"id":"device-flushes","weight":"for","value":1.0,"unit":"flushes_per_sync","source":"/sys","evidence":"/rows/0/flushes_per_op"},{"id":"stale","weight":"limits","value":1,"unit":null,"source":"x","evidence":"/rows/99/ops"}]}}'
doing sync commit fsync 0
row sync commit fsync 7 false
doing sync commit fdatasync 2
row sync commit fdatasync 10 false
alive 2048

case "$FAKE" in
    good | look-refuses-b)
        row sync commit fdatasync 100 true
        row sync commit fsync 101 true
        row recycle life new+zero 3 true
        finish null ;;
    time)
        row sync commit fdatasync 100 true
        row sync commit fsync 101 true
        finish '"time"' ;;
    litters)
        row sync commit fdatasync 100 true
        row sync commit fsync 101 true
        row recycle life new+zero 3 true
        say "{\"event\":\"done\",\"bytes_written\":4096,\"left_behind\":[\"$scratch\"],\"fault\":null,\"ended_by\":null}"
        exit 0 ;;
    forgets) finish null ;;
    never) hang ;;
    floods) yes '{"event":"alive","bytes_written":4096}' ;;
    floods-stderr) yes 'so much to say' >&2 ;;
    babbles) yes 'this is not an event' ;;
    garbage)
        printf 'x\377\000\n{"event":"nonsense"}\n[1\n\n'
        printf 'a line for people \033[2J\n' >&2
        row sync commit fdatasync 100 true
        row sync commit fsync 101 true
        row recycle life new+zero 3 true
        finish null ;;
    killed) kill -9 $$ ;;
    panics)
        echo "thread 'main' panicked at src/nowhere.rs" >&2
        exit 101 ;;
    exits) exit 0 ;;
    mute)
        exec >&-
        hang ;;
    lingers)
        row sync commit fdatasync 100 true
        row sync commit fsync 101 true
        row recycle life new+zero 3 true
        rmdir "$scratch"
        say '{"event":"done","bytes_written":4096,"left_behind":[],"fault":null,"ended_by":null}'
        hang ;;
    leaves-others)
        # In its own session, as a daemon is: holds our pipes, out of reach of the group's kill.
        setsid sleep 30 &
        row sync commit fdatasync 100 true
        row sync commit fsync 101 true
        row recycle life new+zero 3 true
        finish null ;;
    leaves-others-and-hangs)
        setsid sleep 30 &
        hang ;;
    stops)
        : >"$scratch.ready"
        read -r word
        rm "$scratch.ready"
        finish null ;;
    stops-late)
        trap '' INT TERM HUP
        : >"$scratch.ready"
        while sleep 0.5; do alive 4096; done ;;
    stop-file)
        # Goes on until its stdin ends, then tells it by a file.
        : >"$scratch.ready"
        while read -r word && [ "$word" != stop ]; do :; done
        rmdir "$scratch"
        mv "$scratch.ready" "$scratch.stopped"
        exit 0 ;;
esac

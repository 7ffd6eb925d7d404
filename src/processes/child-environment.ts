// What each child process gets of the environment that `serve` was started with. A process that is broken into, crashes or
// is looked at from outside gives away what it was given: nobody gets a secret that it has no use for.

/** What the machine and Node need to run a process as usual. Everything else is somebody's setting or secret. */
const machineNames =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|TZ|TZDIR|LANG|LANGUAGE|LC_[A-Z]+|LD_PRELOAD|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|FAKETIME\w*|NODE_(?:OPTIONS|ENV|COMPILE_CACHE|DISABLE_COMPILE_CACHE|V8_COVERAGE|TEST_CONTEXT))$/

/** For the embedded engine, which is told all it needs in other ways. */
export function machineEnvironment(all: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(all).filter(([name]) => machineNames.test(name)))
}

/** For the worker, which neither makes keys nor reads payloads. */
export function workerEnvironment(all: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...all, PENNON_PERSONAL_KEY: undefined, PENNON_ENCRYPTION_KEY: undefined }
}

/** For a front: keys of the first start are made before there is one. */
export function frontEnvironment(all: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...all, PENNON_PERSONAL_KEY: undefined }
}

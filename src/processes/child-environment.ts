// Selects which variables of `serve`'s environment each child process gets. A process that is broken into, crashes or
// is inspected from outside reveals its environment, so no child gets a secret that it has no use for.

/** Variables that the machine and Node need to run a process. Everything else is a setting or a secret. */
const machineNames =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|TZ|TZDIR|LANG|LANGUAGE|LC_[A-Z]+|LD_PRELOAD|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|FAKETIME\w*|NODE_(?:OPTIONS|ENV|COMPILE_CACHE|DISABLE_COMPILE_CACHE|V8_COVERAGE|TEST_CONTEXT))$/

/** For the embedded engine, which gets its settings in other ways. */
export function pickMachineEnvironment(all: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(all).filter(([name]) => machineNames.test(name)))
}

/** For the worker, which neither creates keys nor reads flag payloads. */
export function pickWorkerEnvironment(all: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...all, PENNON_PERSONAL_KEY: undefined, PENNON_ENCRYPTION_KEY: undefined }
}

/** For a front: the first start's keys are created before any front runs. */
export function pickFrontEnvironment(all: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...all, PENNON_PERSONAL_KEY: undefined }
}

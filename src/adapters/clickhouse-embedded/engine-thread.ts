// The thread that the call into the engine blocks. engine-process.ts starts it with the arguments of the command line.
// The call returns only when the engine could not start or has failed; the thread then reports why.

import { dlopen, getRawPointer, toString as textAt } from 'node:ffi'
import { parentPort, workerData } from 'node:worker_threads'

/** Data from engine-process.ts: the path of libchdb and the arguments without the program's name. */
export interface EngineThreadData {
  readonly libraryPath: string
  readonly args: readonly string[]
}

if (parentPort !== null) {
  const { libraryPath, args } = workerData as EngineThreadData
  parentPort.postMessage(callEngine(libraryPath, ['clickhouse', ...args]))
}

/** Runs `clickhouse local` in this thread until it ends; returns its error text, or '' if it ended without an error. */
function callEngine(libraryPath: string, args: readonly string[]): string {
  const { functions } = dlopen(libraryPath, {
    chdb_set_signal_handlers_enabled: { arguments: ['int32'], return: 'void' },
    chdb_query_cmdline: { arguments: ['int32', 'pointer'], return: 'pointer' },
    chdb_result_error: { arguments: ['pointer'], return: 'pointer' },
  })
  // Signals belong to the main thread (engine-process.ts): the engine must not install its own handlers.
  functions.chdb_set_signal_handlers_enabled(0)
  const texts = args.map(text => Buffer.from(`${text}\0`))
  const pointers = Buffer.alloc(8 * (texts.length + 1)) // the last one stays null, as argv ends
  texts.forEach((text, index) => {
    pointers.writeBigUInt64LE(BigInt(getRawPointer(text)), 8 * index)
  })
  const result = functions.chdb_query_cmdline(texts.length, pointers)
  return textAt(functions.chdb_result_error(result)) ?? ''
}

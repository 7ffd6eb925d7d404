// Encodes each Parquet file in a separate thread, which lives from the file's first byte to its last.

import { Worker } from 'node:worker_threads'
import type { OpenParquetFile } from '#ports/parquet-files.ts'
import type { ParquetReply, ParquetRequest, ParquetThreadData } from './parquet-protocol.ts'

/** The thread's memory limit: more than the footer of the longest file and a row group of the largest rows need. */
const heapMegabytesMax = 512

export const openParquetFile: OpenParquetFile = columns => {
  const workerData: ParquetThreadData = { columns: columns.map(({ name, kind }) => ({ name, kind })) }
  const thread = new Worker(new URL('./parquet-thread.ts', import.meta.url), {
    workerData,
    name: 'pennon parquet',
    resourceLimits: { maxOldGenerationSizeMb: heapMegabytesMax },
  })
  thread.unref()
  const waiting: PromiseWithResolvers<Uint8Array>[] = []
  let failure: Error | null = null
  const fail = (error: Error) => {
    failure ??= error
    for (const { reject } of waiting.splice(0)) reject(failure)
  }
  thread.on('message', ({ bytes }: ParquetReply) => waiting.shift()?.resolve(bytes))
  thread.on('error', fail)
  thread.on('exit', () => fail(new Error('the thread of a Parquet file has ended')))
  const send = (request: ParquetRequest) => thread.postMessage(request)
  const ask = (request: ParquetRequest): Promise<Uint8Array> => {
    if (failure !== null) return Promise.reject(failure)
    const reply = Promise.withResolvers<Uint8Array>()
    waiting.push(reply)
    send(request)
    return reply.promise
  }
  return {
    add: rows => send({ kind: 'rows', columns: rows }),
    endGroup: () => ask({ kind: 'endGroup' }),
    end: metadata => ask({ kind: 'end', metadata }),
    close: () => void thread.terminate(),
  }
}

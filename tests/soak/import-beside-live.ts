// An import of millions of events beside live ones: how long a live event takes to be found with and without it, how fast
// imported events are stored, and how much memory the processes take. Then the job is published and discarded.

import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { type Pennon, startPennon, testProjectKey } from '../support/pennon.ts'
import { foundLags, summary } from './found-lags.ts'

const batchSize = 5_000
const sendersCount = 2
const api = '/api/projects/@current'

interface Job {
  readonly id: number
  readonly state: string
}

/** @returns whether every event was stored, was found once it was published, and was gone once it was discarded. */
export async function runImportBesideLive(options: {
  readonly eventCount: number
  readonly log: (line: string) => void
}): Promise<boolean> {
  const { eventCount, log } = options
  const pennon = await startPennon()
  try {
    const endMs = performance.now() + 20_000
    log(`without an import: ${summary(await foundLags(pennon, () => performance.now() >= endMs))}`)
    const job = await pennon.api<Job>('POST', `${api}/import_jobs/`, { source: 'soak' })
    let isOver = false
    const lags = foundLags(pennon, () => isOver)
    const curve = watchMemory(pennon, () => isOver, log)
    const startMs = performance.now()
    await sendAll(pennon, job.id, eventCount)
    log(`${eventCount} events sent in ${seconds(startMs)} s`)
    await pennon.caughtUp(3_600_000)
    const tookS = seconds(startMs)
    isOver = true
    log(`stored after ${tookS} s: ${Math.round(eventCount / Number(tookS))} events/s`)
    log(`beside the import: ${summary(await lags)}`)
    await curve
    const { rows } = await pennon.api<{ rows: number }>('GET', `${api}/import_jobs/${job.id}/report/`)
    const isPublished = await endJob(pennon, job.id, 'publish', 'published', log)
    const isDiscarded = await endJob(pennon, job.id, 'discard', 'discarded', log)
    log(`${rows} rows; published ${isPublished}, discarded ${isDiscarded}`)
    return rows === eventCount && isPublished && isDiscarded
  } finally {
    await pennon.stop()
  }
}

async function sendAll(pennon: Pennon, jobId: number, eventCount: number): Promise<void> {
  let next = 0
  const send = async () => {
    while (next < eventCount) {
      const from = next
      next += batchSize
      const body = gzipSync(batchOf(from, Math.min(batchSize, eventCount - from)), { level: 1 })
      for (;;) {
        const response = await fetch(`${pennon.url}/batch/`, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'content-encoding': 'gzip',
            'x-import-job': String(jobId),
          },
          body,
        })
        await response.arrayBuffer()
        if (response.status === 200) break
        await sleep(1_000 * Math.min(5, Number(response.headers.get('retry-after') ?? 1)))
      }
    }
  }
  await Promise.all(Array.from({ length: sendersCount }, send))
}

/** Events of ten days, a person for each fifty. */
function batchOf(from: number, count: number): string {
  const events: string[] = []
  for (let index = from; index < from + count; index++) {
    const uuid = `5a5a5a5a-0000-4000-8000-${index.toString(16).padStart(12, '0')}`
    const timestamp = new Date(Date.UTC(2024, 0, 1) + (index % 864_000) * 1_000).toISOString()
    const id = `user-${Math.floor(index / 50)}`
    events.push(
      `{"uuid":"${uuid}","event":"paid","timestamp":"${timestamp}","properties":{"distinct_id":"${id}","$set":{"plan":"p${index % 3}"},"amount":${index},"page":"/checkout/${index % 100}"}}`,
    )
  }
  return `{"api_key":"${testProjectKey}","historical_migration":true,"batch":[${events.join(',')}]}`
}

async function watchMemory(pennon: Pennon, isOver: () => boolean, log: (line: string) => void): Promise<void> {
  while (!isOver()) {
    await sleep(10_000)
    const pids = { serve: pennon.pid, ...pennon.childPids() }
    const sizes = Object.entries(pids).map(([name, pid]) => `${name} ${residentMiB(pid)} MiB`)
    log(`  memory: ${sizes.join(', ')}`)
  }
}

function residentMiB(pid: number): number {
  const kibibytes = /^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0
  return Math.round(Number(kibibytes) / 1_024)
}

async function endJob(
  pennon: Pennon,
  id: number,
  how: 'publish' | 'discard',
  state: string,
  log: (line: string) => void,
): Promise<boolean> {
  const startMs = performance.now()
  await pennon.api('POST', `${api}/import_jobs/${id}/${how}/`)
  while ((await pennon.api<Job>('GET', `${api}/import_jobs/${id}/`)).state !== state) await sleep(500)
  log(`${state} after ${seconds(startMs)} s`)
  return true
}

function seconds(startMs: number): string {
  return ((performance.now() - startMs) / 1_000).toFixed(1)
}

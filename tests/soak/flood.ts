// Large batches from many senders that ignore when to retry: the front's memory must stay bounded, and flags must be
// answered. Memory is measured by the kernel (Linux).

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startPennon, testProjectKey } from '../support/pennon.ts'
import { numberOf } from './settings.ts'

/** The front's memory without bodies, 192 MiB of large bodies, and decoding, for which a thread may take 1 GiB. */
const peakMiBMax = 1_536

export async function runFlood(): Promise<boolean> {
  const [senderCount, mebibytes, seconds] = [
    numberOf('SENDERS', 200),
    numberOf('MEBIBYTES', 19),
    numberOf('SECONDS', 30),
  ]
  const pennon = await startPennon({ settings: { PENNON_LOG_LEVEL: 'error' } })
  const script = fileURLToPath(new URL('./flood-sender.ts', import.meta.url))
  const args = [script, pennon.url, testProjectKey, String(senderCount), String(mebibytes)]
  const senders = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    let answers = ''
    senders.stdout.on('data', data => {
      answers = String(data).trim().split('\n').at(-1)!
    })
    const tookMs: number[] = []
    for (const untilMs = performance.now() + seconds * 1_000; performance.now() < untilMs; await sleep(50)) {
      const startedMs = performance.now()
      const { status } = await pennon.decide()
      if (status !== 200) throw new Error(`flags were answered with ${status}`)
      tookMs.push(performance.now() - startedMs)
    }
    tookMs.sort((a, b) => a - b)
    const at = (share: number) => Math.round(tookMs[Math.floor(tookMs.length * share)]!)
    const peakMiB = Math.round(
      Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pennon.pid}/status`, 'utf8'))![1]) / 1024,
    )
    console.log(`${senderCount} senders of ${mebibytes} MiB for ${seconds} s: ${answers}`)
    console.log(
      `flags: ${tookMs.length} answers, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms; the front's peak was ${peakMiB} MiB`,
    )
    return peakMiB <= peakMiBMax
  } finally {
    senders.kill('SIGKILL')
    await pennon.stop()
  }
}

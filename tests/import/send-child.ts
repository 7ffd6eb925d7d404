// Sends a job and kills its own process at a step: node send-child.ts FOLDER TARGET JOB [STEP COUNT].

import { setTimeout as sleep } from 'node:timers/promises'
import { runSendStage } from '#importer/send/send-stage.ts'
import { type MemoryJobOptions, memoryStagedJob } from '../support/memory-staged-job.ts'
import { sendOptions } from '../support/sending.ts'

const [folder, target, jobText, step, count = '1'] = process.argv.slice(2)
const job = memoryStagedJob(JSON.parse(jobText!) as MemoryJobOptions)
let left = Number(count)
await runSendStage(
  sendOptions(folder!, job, target!, {
    clock: {
      nowMs: Date.now,
      sleep: async (ms, signal) => void (await sleep(ms, undefined, { signal })),
      random: Math.random,
    },
    onStep: now => {
      if (now === step && --left === 0) process.kill(process.pid, 'SIGKILL')
    },
  }),
)

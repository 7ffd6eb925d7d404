// Measures what this tree does in two ways: cookieless events beside those of the same page with cookies, which one server gets
// alternately, and flags of version 2 beside the same conditions as flags of version 1, on two servers in turns.

import type { Pennon } from '../../tests/support/pennon.ts'
import { movePinned, startBenchServer } from '../bench-server.ts'
import { cookielessBody, visitBody } from '../bodies.ts'
import { steady } from '../flags-figure.ts'
import { type Asked, askInterleaved, mean, microsPerAnswer, type Pair, ratioOf, startTwo } from '../interleaved.ts'
import { httpRequest } from '../load-generator.ts'
import { micros, print } from '../report.ts'
import { batchCase, singleCase } from './capture.ts'
import { evaluationCases } from './evaluation.ts'

const captureRounds = 40
const flagRounds = 6

export async function beside(): Promise<void> {
  const server = await startBenchServer()
  try {
    for (const pid of Object.values(server.childPids())) movePinned(pid, 'load')
    const single = await askAlternately(server, { own: singleCase(cookielessBody), other: singleCase(visitBody) })
    printPairs('capture, cookieless', single, '≤ 1.1')
    const own = batchCase(10, 'plain', cookielessBody)
    const batches = await askAlternately(server, { own, other: batchCase(10, 'plain', visitBody) })
    printPairs('/batch/ of 10, cookieless', batches, '≤ 1.1')
  } finally {
    await server.stop()
  }
  printPairs('20 flags of version 2', await flagsOfVersion2(), '≤ 1')
}

async function askAlternately(server: Pennon, asked: { readonly own: Asked; readonly other: Asked }): Promise<Pair[]> {
  const ask = async (which: Asked) => {
    const figure = await microsPerAnswer(server, { ...which, durationMs: 700 })
    await server.caughtUp()
    return figure
  }
  const pairs: Pair[] = []
  for (let round = 0; round < captureRounds; round++) {
    const early = round % 2 === 0 ? await ask(asked.other) : null
    const own = await ask(asked.own)
    pairs.push({ own, other: early ?? (await ask(asked.other)) })
  }
  // The first rounds compile the code.
  return pairs.slice(4)
}

async function flagsOfVersion2(): Promise<Pair[]> {
  const pairs: Pair[] = []
  for (let round = 0; round < flagRounds; round++) {
    const both = await startTwo(round, { own: () => startBenchServer(), other: () => startBenchServer() })
    try {
      const own = flagsAsked('20 flags of version 2, all properties sent')
      pairs.push(await askInterleaved(both, { own, other: flagsAsked('20 flags, all properties sent') }))
    } finally {
      await Promise.all([both.own.stop(), both.other.stop()])
    }
  }
  return pairs
}

function flagsAsked(name: string) {
  return async (server: Pennon) => {
    const { path, body } = await evaluationCases[name]!(server)
    return { requests: [httpRequest(path, body)], connections: steady.connections }
  }
}

function printPairs(name: string, pairs: readonly Pair[], aim: string): void {
  const { log, standardError } = ratioOf(pairs)
  print({
    name,
    value: `${Math.exp(log).toFixed(2)} × ± ${standardError!.toFixed(2)}; ${micros(mean(pairs.map(({ own }) => own)))}`,
    floor: micros(mean(pairs.map(({ other }) => other))),
    aim,
  })
}

import { readdirSync, readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'

/** @returns a function that returns what these streams have printed so far. */
export function collectText(...streams: readonly Readable[]): () => string {
  let text = ''
  for (const stream of streams)
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
  return () => text
}

/** Process ids of a process's current children. */
export function childProcessesOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => parentOf(pid) === parent)
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

function parentOf(pid: number): number | null {
  try {
    return Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    return null // it has exited since
  }
}

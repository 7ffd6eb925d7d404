// Reads how many bytes the system holds for connections: bytes that are written, but not acknowledged by the peer. Only
// Linux has a table of all connections.

import { readFile, readlink } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** How many rows of the table are read in one turn of the event loop. */
const rowsPerTurn = 500

/**
 * @param files the numbers of the connections' open files.
 * @returns the bytes held for each connection, by these numbers, without unknown connections.
 */
export async function readTcpQueues(files: ReadonlySet<number>): Promise<ReadonlyMap<number, number>> {
  const queues = new Map<number, number>()
  if (process.platform !== 'linux') return queues
  const tables = await Promise.all(['/proc/self/net/tcp', '/proc/self/net/tcp6'].map(readTextOrEmpty))
  const bytesByInode = new Map<string, number>()
  let rowCount = 0
  for (const table of tables)
    for (const [inode, bytes] of parseTcpTable(table)) {
      bytesByInode.set(inode, bytes)
      if (++rowCount % rowsPerTurn === 0) await nextTurn()
    }
  for (const file of files) {
    const link = await readlink(`/proc/self/fd/${file}`).catch(() => '')
    const bytes = bytesByInode.get(/^socket:\[(\d+)\]$/.exec(link)?.[1] ?? '')
    if (bytes !== undefined) queues.set(file, bytes)
  }
  return queues
}

/** Yields the inode of each socket, with the number of bytes that the system holds for the socket's peer. */
export function* parseTcpTable(table: string): Generator<[inode: string, bytes: number]> {
  for (let from = table.indexOf('\n') + 1; from > 0; ) {
    const end = table.indexOf('\n', from)
    const row = readColumns(table, from, end < 0 ? table.length : end)
    if (row !== null) yield row
    from = end + 1
  }
}

/**
 * Reads column 4 (bytes for the peer : bytes from the peer) and column 9 (inode) of a row; null if the row is too short.
 */
function readColumns(table: string, from: number, end: number): [inode: string, bytes: number] | null {
  let bytes = 0
  let at = from
  for (let column = 0; ; column++) {
    while (at < end && table.charCodeAt(at) === space) at++
    if (at === end) return null
    const begin = at
    while (at < end && table.charCodeAt(at) !== space) at++
    if (column === 4) bytes = Number.parseInt(table.slice(begin, at), 16)
    if (column === 9) return [table.slice(begin, at), bytes]
  }
}

const space = 0x20

/** A missing or hidden table counts as empty: a system without IPv6, for example, has no table for it. */
const readTextOrEmpty = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '')

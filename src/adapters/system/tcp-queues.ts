// Reads how many bytes the system still holds for the peers of connections: what was written and not acknowledged.
// Linux has a table of all connections for it; elsewhere nothing is known.

import { readFile, readlink } from 'node:fs/promises'

/**
 * @param files the numbers of the connections' open files.
 * @returns bytes by these numbers; connections of which nothing is known are left out.
 */
export async function readTcpQueues(files: ReadonlySet<number>): Promise<ReadonlyMap<number, number>> {
  const queues = new Map<number, number>()
  if (process.platform !== 'linux') return queues
  const tables = await Promise.all(['/proc/self/net/tcp', '/proc/self/net/tcp6'].map(textOf))
  const bytesByInode = new Map(tables.flatMap(parseTcpTable))
  for (const file of files) {
    const link = await readlink(`/proc/self/fd/${file}`).catch(() => '')
    const bytes = bytesByInode.get(/^socket:\[(\d+)\]$/.exec(link)?.[1] ?? '')
    if (bytes !== undefined) queues.set(file, bytes)
  }
  return queues
}

/** @returns inodes of sockets that hold bytes for their peers, and how many. */
export function parseTcpTable(table: string): [inode: string, bytes: number][] {
  return table
    .split('\n')
    .slice(1)
    .map(line => line.trim().split(/\s+/))
    .filter(columns => columns.length > 9)
    .map(columns => [columns[9]!, Number.parseInt(columns[4]!, 16)])
}

/** A system without one of the protocols has no table of it; one that hides its tables is as if it had none. */
const textOf = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '')

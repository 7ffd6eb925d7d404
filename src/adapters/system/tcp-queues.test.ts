import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { eventually } from '../../../tests/support/eventually.ts'
import { parseTcpTable, readTcpQueues } from './tcp-queues.ts'

const fileOf = (socket: Socket) => (socket as unknown as { _handle: { fd: number } })._handle.fd

describe('readTcpQueues', () => {
  it('returns the unacknowledged bytes of connections, and nothing for other file descriptors', async t => {
    if (process.platform !== 'linux') return assert.equal((await readTcpQueues(new Set([1]))).size, 0)
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const client = connect(port, '127.0.0.1').pause()
    const [socket] = (await once(server, 'connection')) as [Socket]
    t.after(() => {
      for (const end of [client, socket]) end.destroy()
      server.close()
    })
    const queued = async () => (await readTcpQueues(new Set([fileOf(socket), 0, 999_999]))).get(fileOf(socket))
    assert.equal(await queued(), 0)
    socket.write(Buffer.alloc(32 * 1024 * 1024))
    await eventually(async () => (await queued())! > 0)
    client.resume()
    await eventually(async () => (await queued()) === 0)
  })
})

describe('parseTcpTable', () => {
  it('reads the inode and the bytes of each connection', () => {
    const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 5001 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 0003F2A1:00000010 01:00000014 00000000  1000        0 5002 2 0000000000000000 20 4 30 10 -1
`
    assert.deepEqual(
      [...parseTcpTable(table)],
      [
        ['5001', 0],
        ['5002', 0x3f2a1],
      ],
    )
    assert.deepEqual([...parseTcpTable(table.trimEnd())].length, 2)
    for (const none of ['', 'sl local_address', 'sl\n   0: 0100007F:1F90\n'])
      assert.deepEqual([...parseTcpTable(none)], [])
  })
})

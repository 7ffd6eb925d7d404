// One load run in a process of its own: options in as an IPC message, the result out as one.

import { type LoadOptions, runLoad } from './load-generator.ts'

process.on('message', async (message: Omit<LoadOptions, 'requests'> & { requests: string[] }) => {
  const requests = message.requests.map(text => Buffer.from(text, 'base64'))
  const result = await runLoad({ ...message, requests })
  process.send?.(result, () => process.disconnect?.())
})

import { useState } from 'react'
import { Button, IconButton } from '../../components/controls/button.tsx'
import { IconCell } from '../../components/controls/icon-cell.tsx'
import { TextField } from '../../components/fields/text-field.tsx'
import { CopyButton } from '../../components/overlays/copy-button.tsx'
import { ConfirmDialog, Dialog } from '../../components/overlays/dialog.tsx'
import { MenuAt, MenuButton, type MenuItem } from '../../components/overlays/menu.tsx'
import { PopoverAt, PopoverButton } from '../../components/overlays/popover.tsx'
import { showToast } from '../../components/overlays/toasts.tsx'
import { Outside } from '../../components/text/outside.tsx'
import { samples } from './samples.ts'
import { Row, Section } from './section.tsx'

const menuItems: readonly MenuItem[] = [
  { id: 'edit', label: 'Edit new-checkout', shortcut: 'e', icon: 'flag' },
  { id: 'copy', label: 'Copy the key', icon: 'copy' },
  { id: 'restore', label: 'Restore version 11', disabledReason: 'You are a viewer' },
  { id: 'long', label: samples.sentence },
  { id: 'delete', label: 'Delete new-checkout', icon: 'trash', isDanger: true, startsGroup: true },
]

const changes = Array.from({ length: 30 }, (_, place) => `Change ${place + 1}: condition 2, from 10 % to 25 %.`)

type OpenDialog = 'dialog' | 'wide' | 'confirm' | 'delete' | null

export function OverlaysSection() {
  const [open, setOpen] = useState<OpenDialog>(null)
  const [menuAnchor, setMenuAnchor] = useState<Element | null>(null)
  const [popoverAnchor, setPopoverAnchor] = useState<Element | null>(null)
  const [name, setName] = useState('')
  const close = () => setOpen(null)
  return (
    <Section title="Overlays">
      <Row>
        <Button onPress={() => setOpen('dialog')}>Open a dialog</Button>
        <Button onPress={() => setOpen('wide')}>Open a wide dialog</Button>
        <Button onPress={() => setOpen('confirm')}>Open a confirmation</Button>
        <Button onPress={() => setOpen('delete')}>Open a deletion</Button>
      </Row>
      <Row>
        <MenuButton label="Flag" items={menuItems} onAction={id => showToast({ text: `Chosen: ${id}` })}>
          <IconButton icon="ellipsis" label="Open a menu" kind="plain" />
        </MenuButton>
        <IconCell icon="ellipsis" label="Open a menu here" onClick={event => setMenuAnchor(event.currentTarget)} />
        <MenuAt
          label="Flag"
          items={menuItems}
          anchor={menuAnchor}
          onAction={id => showToast({ text: `Chosen: ${id}` })}
          onClose={() => setMenuAnchor(null)}
        />
        <PopoverButton title="Tested by 2 flags" button={<Button>Open a popover</Button>}>
          <p>new-checkout-mobile and new-checkout-web test this flag.</p>
        </PopoverButton>
        <IconCell icon="info" label="Open a popover here" onClick={event => setPopoverAnchor(event.currentTarget)} />
        <PopoverAt title="Tested by 2 flags" anchor={popoverAnchor} onClose={() => setPopoverAnchor(null)}>
          <p>new-checkout-mobile and new-checkout-web test this flag.</p>
        </PopoverAt>
      </Row>
      <Row>
        <Button
          onPress={() =>
            showToast({
              text: 'new-checkout is off, served since 10:04:12',
              onUndo: () => showToast({ text: 'new-checkout is on again: version 15' }),
            })
          }
        >
          Show a toast
        </Button>
        <Button onPress={() => showToast({ kind: 'bad', text: 'Not saved: the server does not answer. Try again.' })}>
          Show a failure
        </Button>
        <Button onPress={() => showToast({ text: samples.long })}>Show a long toast</Button>
        <CopyButton label="Copy the link" text="https://example.com/" hasWords />
        <CopyButton label="Copy the id" text="0199-1234" />
      </Row>
      <Dialog
        title="Invite a user"
        isOpen={open === 'dialog'}
        onClose={close}
        actions={
          <>
            <Button onPress={close}>Cancel</Button>
            <Button kind="filled" onPress={close}>
              Make a link
            </Button>
          </>
        }
      >
        <p>The link works once, within 7 days.</p>
        <TextField label="Name" value={name} onChange={setName} autoFocus />
      </Dialog>
      <Dialog title={<Outside text={samples.long} />} isOpen={open === 'wide'} onClose={close} isWide>
        {changes.map(change => (
          <p key={change}>{change}</p>
        ))}
      </Dialog>
      <ConfirmDialog
        title="Turn off new-checkout?"
        isOpen={open === 'confirm'}
        onClose={close}
        confirmLabel="Turn off for 4,210 persons"
        onConfirm={() => Promise.reject(new Error('Not turned off: version 14 is served by now.'))}
      >
        <p>Two flags test it: new-checkout-mobile and new-checkout-web.</p>
      </ConfirmDialog>
      <ConfirmDialog
        title="Delete new-checkout?"
        isOpen={open === 'delete'}
        onClose={close}
        confirmLabel="Delete new-checkout"
        onConfirm={() => showToast({ text: 'new-checkout is deleted' })}
        isDanger
        typedName="new-checkout"
      >
        <p>4,210 persons get it now. They will get nothing.</p>
      </ConfirmDialog>
    </Section>
  )
}

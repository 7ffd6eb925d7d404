import { type ReactNode, useState } from 'react'
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from 'react-aria-components'
import { joinClasses } from '../class-names.ts'
import { Bar } from '../controls/bar.tsx'
import { Button, IconButton } from '../controls/button.tsx'
import { TextField } from '../fields/text-field.tsx'
import { Outside } from '../text/outside.tsx'
import css from './overlays.module.css'

export interface DialogProps {
  readonly title: ReactNode
  readonly children: ReactNode
  /** The buttons, the main one last. */
  readonly actions?: ReactNode
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly isWide?: boolean
  /** Whether neither pressing outside nor Escape closes it, because something would be lost. */
  readonly isKept?: boolean
  readonly role?: 'dialog' | 'alertdialog'
}

export function Dialog({ title, children, actions, isOpen, onClose, isWide, isKept = false, role }: DialogProps) {
  return (
    <ModalOverlay
      className={css.veil!}
      isOpen={isOpen}
      isDismissable={!isKept}
      isKeyboardDismissDisabled={isKept}
      onOpenChange={isStillOpen => {
        if (!isStillOpen) onClose()
      }}
    >
      <Modal className={joinClasses(css.modal, isWide && css.wide)}>
        <AriaDialog className={css.dialog} role={role}>
          <div className={css.dialogHead}>
            <Heading slot="title" level={2}>
              {title}
            </Heading>
            <IconButton icon="x" label="Close" onPress={onClose} />
          </div>
          <div className={css.dialogBody}>{children}</div>
          {actions && <div className={css.dialogActions}>{actions}</div>}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  )
}

export interface ConfirmDialogProps extends Omit<DialogProps, 'actions' | 'role'> {
  /** What the button does, with its object: "Delete new-checkout". */
  readonly confirmLabel: string
  /** The dialog closes when this resolves, and shows the message of what it throws. */
  readonly onConfirm: () => Promise<void> | void
  readonly isDanger?: boolean
  /** What has to be typed, for what cannot be undone. */
  readonly typedName?: string
}

export function ConfirmDialog(props: ConfirmDialogProps) {
  // What was typed or went wrong is forgotten when the dialog closes.
  return props.isOpen ? <OpenConfirmDialog {...props} /> : null
}

function OpenConfirmDialog({ confirmLabel, onConfirm, isDanger, typedName, ...dialog }: ConfirmDialogProps) {
  const [typed, setTyped] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<string | null>(null)
  const isNamed = typedName === undefined || typed === typedName
  const confirm = async () => {
    setBusy(true)
    setFailure(null)
    try {
      await onConfirm()
      dialog.onClose()
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error))
      setBusy(false)
    }
  }
  return (
    <Dialog
      {...dialog}
      role="alertdialog"
      actions={
        <>
          <Button onPress={dialog.onClose}>Cancel</Button>
          <Button
            kind={isDanger ? 'danger' : 'filled'}
            isBusy={isBusy}
            disabledReason={isNamed ? null : 'Type the name first'}
            onPress={confirm}
          >
            {confirmLabel}
          </Button>
        </>
      }
    >
      {dialog.children}
      {typedName !== undefined && (
        <div>
          <TextField
            label="Name"
            help={
              <>
                Type <Outside text={typedName} isCode /> to confirm. This cannot be undone.
              </>
            }
            value={typed}
            onChange={setTyped}
            autoFocus
            isCode
          />
        </div>
      )}
      {failure !== null && <Bar kind="bad">{failure}</Bar>}
    </Dialog>
  )
}

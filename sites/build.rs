// SPDX-License-Identifier: BSD-2-Clause
//! Writes the trampolines: one for each name of each function of MPI that can post a receive or
//! send a message. A call that waits counts, because collective operations go on inside it. Those of
//! functions that Open MPI lacks are in another library (`large`).

use std::fmt::Write as _;
use std::path::PathBuf;

/// The functions, without `MPI_`: those of MPI 4.1 that communicate.
const FUNCTIONS: &str = "
Accumulate Allgather Allgather_init Allgatherv Allgatherv_init Allreduce Allreduce_init
Alltoall Alltoall_init Alltoallv Alltoallv_init Alltoallw Alltoallw_init Barrier Barrier_init
Bcast Bcast_init Bsend Bsend_init Buffer_detach Buffer_flush Buffer_iflush Cancel Cart_create
Cart_sub Comm_accept Comm_connect Comm_create Comm_create_from_group Comm_create_group
Comm_detach_buffer Comm_disconnect Comm_dup Comm_dup_with_info Comm_flush_buffer Comm_free
Comm_idup Comm_idup_with_info Comm_iflush_buffer Comm_join Comm_spawn Comm_spawn_multiple
Comm_split Comm_split_type Compare_and_swap Dist_graph_create Dist_graph_create_adjacent Exscan
Exscan_init Fetch_and_op File_close File_delete File_iread File_iread_all File_iread_at
File_iread_at_all File_iread_shared File_iwrite File_iwrite_all File_iwrite_at
File_iwrite_at_all File_iwrite_shared File_open File_preallocate File_read File_read_all
File_read_all_begin File_read_all_end File_read_at File_read_at_all File_read_at_all_begin
File_read_at_all_end File_read_ordered File_read_ordered_begin File_read_ordered_end
File_read_shared File_seek_shared File_set_atomicity File_set_info File_set_size File_set_view File_sync
File_write File_write_all File_write_all_begin File_write_all_end File_write_at
File_write_at_all File_write_at_all_begin File_write_at_all_end File_write_ordered
File_write_ordered_begin File_write_ordered_end File_write_shared Finalize Gather Gather_init
Gatherv Gatherv_init Get Get_accumulate Graph_create Iallgather Iallgatherv Iallreduce
Ialltoall Ialltoallv Ialltoallw Ibarrier Ibcast Ibsend Iexscan Igather Igatherv Improbe Imrecv
Ineighbor_allgather Ineighbor_allgatherv Ineighbor_alltoall Ineighbor_alltoallv
Ineighbor_alltoallw Init Init_thread Intercomm_create Intercomm_create_from_groups
Intercomm_merge Iprobe Irecv Ireduce Ireduce_scatter Ireduce_scatter_block Irsend Iscan
Iscatter Iscatterv Isend Isendrecv Isendrecv_replace Issend Mprobe Mrecv Neighbor_allgather
Neighbor_allgather_init Neighbor_allgatherv Neighbor_allgatherv_init Neighbor_alltoall
Neighbor_alltoall_init Neighbor_alltoallv Neighbor_alltoallv_init Neighbor_alltoallw
Neighbor_alltoallw_init Parrived Pready Pready_list Pready_range Precv_init Probe Psend_init
Put Raccumulate Recv Recv_init Reduce Reduce_init Reduce_scatter Reduce_scatter_block
Reduce_scatter_block_init Reduce_scatter_init Request_free Request_get_status
Request_get_status_all Request_get_status_any Request_get_status_some Rget Rget_accumulate Rput
Rsend Rsend_init Scan Scan_init Scatter Scatter_init Scatterv Scatterv_init Send Send_init
Sendrecv Sendrecv_replace Session_detach_buffer Session_finalize Session_flush_buffer
Session_iflush_buffer Session_init Ssend Ssend_init Start Startall Test Testall Testany
Testsome Wait Waitall Waitany Waitsome Win_allocate Win_allocate_shared Win_complete Win_create
Win_create_dynamic Win_fence Win_flush Win_flush_all Win_flush_local Win_flush_local_all
Win_free Win_lock Win_lock_all Win_post Win_set_info Win_start Win_test Win_unlock Win_unlock_all Win_wait";

/// Functions of MPICH and Intel MPI that other MPIs lack, without `MPIX_`. Those of Open MPI 5 are
/// missing, because mpi4py calls `MPIX_Comm_agree` if it finds that name, and Open MPI 4 lacks it.
const EXTENSIONS: &str = "
Allreduce_enqueue Comm_agree Comm_failure_ack Comm_failure_get_acked Comm_get_failed Comm_revoke
Comm_shrink Get_notify Irecv_enqueue Isend_enqueue Put_notify Recv_enqueue Request_is_complete
Send_enqueue Stream_comm_create Stream_comm_create_multiplex Stream_irecv Stream_isend
Stream_progress Stream_recv Stream_send Threadcomm_finish Threadcomm_free Threadcomm_init
Threadcomm_start Wait_enqueue Waitall_enqueue Win_create_notify Win_free_notify Win_get_notify
Win_get_notify_request Win_set_notify";

/// Returns the names of a function: in C with counts of both sizes, and in Fortran as gfortran,
/// ifx and flang call it from `mpif.h`, `mpi` and `mpi_f08` of MPICH, Intel MPI and Open MPI.
fn names(prefix: &str, function: &str) -> [String; 10] {
    let name = format!("{prefix}_{function}");
    let lower = name.to_lowercase();
    [
        name.clone(),
        format!("{name}_c"),
        format!("P{name}"),
        format!("P{name}_c"),
        format!("{lower}_"),
        format!("p{lower}_"),
        format!("{lower}_f08_"),
        format!("p{lower}_f08_"),
        format!("{lower}_f08ts_"),
        format!("{lower}_c_f08ts_"),
    ]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut list, mut functions, mut trampolines) = (String::new(), String::new(), String::new());
    let is_large = std::env::var("CARGO_PKG_NAME")?.ends_with("large");
    let mut slot = 0;
    let standard = FUNCTIONS.split_whitespace().map(|function| ("MPI", function));
    let extensions = EXTENSIONS.split_whitespace().map(|function| ("MPIX", function));
    for (prefix, function) in standard.chain(extensions) {
        writeln!(functions, "c\"{prefix}_{function}\",")?;
        for name in names(prefix, function) {
            writeln!(list, "c\"{name}\",")?;
            let is_of_large = prefix == "MPIX" || name.ends_with("_c") || name.contains("_c_f08");
            if is_large == is_of_large {
                writeln!(trampolines, "trampoline!({name}, {slot});")?;
            }
            slot += 1;
        }
    }
    let count = FUNCTIONS.split_whitespace().chain(EXTENSIONS.split_whitespace()).count();
    let names = format!(
        "/// Names by number.\n\
         pub(crate) static NAMES: [&CStr; {slot}] = [\n{list}];\n\
         /// Functions of MPI; all names of one follow each other in `NAMES`.\n\
         pub(crate) static FUNCTIONS: [&CStr; {count}] = [\n{functions}];\n"
    );
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("names.rs"), names)?;
    std::fs::write(out.join("trampolines.rs"), trampolines)?;
    Ok(())
}

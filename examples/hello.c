// SPDX-License-Identifier: BSD-2-Clause
// One endpoint of the provider sends itself a tagged message. Build and run:
//   cc examples/hello.c -o hello -lfabric && FI_PROVIDER_PATH=target/provider ./hello
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(const char *what, long result) {
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-result));
        exit(1);
    }
}

int main(void) {
    struct fi_info *hints = fi_allocinfo(), *info;
    hints->fabric_attr->prov_name = strdup("tcam");
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_TAGGED;
    check("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_ep *ep;
    struct fid_av *av;
    struct fid_cq *cq;
    check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
    check("fi_domain", fi_domain(fabric, info, &domain, NULL));
    check("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
    check("fi_av_open", fi_av_open(domain, &(struct fi_av_attr){.type = FI_AV_TABLE}, &av, NULL));
    check("fi_cq_open", fi_cq_open(domain, &(struct fi_cq_attr){.format = FI_CQ_FORMAT_TAGGED}, &cq, NULL));
    check("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
    check("fi_ep_bind", fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
    check("fi_enable", fi_enable(ep));
    char name[64], text[16] = "", sent[16] = "hello";
    size_t length = sizeof name;
    fi_addr_t self;
    check("fi_getname", fi_getname(&ep->fid, name, &length));
    check("fi_av_insert", fi_av_insert(av, name, 1, &self, 0, NULL));
    check("fi_trecv", fi_trecv(ep, text, sizeof text, NULL, self, 7, 0, NULL));
    check("fi_tsend", fi_tsend(ep, sent, sizeof sent, NULL, self, 7, NULL));
    struct fi_cq_tagged_entry done[2];
    for (long completed = 0, read; completed < 2; completed += read > 0 ? read : 0)
        if ((read = fi_cq_read(cq, done, 2)) != -FI_EAGAIN) check("fi_cq_read", read);
    printf("%s, tag %d\n", text, 7);
    struct fid *all[] = {&ep->fid, &cq->fid, &av->fid, &domain->fid, &fabric->fid};
    for (int i = 0; i < 5; i++) check("fi_close", fi_close(all[i]));
    fi_freeinfo(info);
    fi_freeinfo(hints);
}
